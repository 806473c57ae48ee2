// The widget that passes runs to a player; see living.py. This text is appended to the player's module.

const holderOf = (name) => (name ? waitFor(() => document.querySelector(`[data-workbench="${name}"]`), 100, 30) : null)
const bytesOf = (view) => view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength)

// Name of a clock -> the players that share it.
const clocks = (globalThis.workbenchClocks ??= new Map())
function join(player, name) {
  player.group?.delete(player)
  player.group = name ? clocks.get(name) ?? new Set() : null
  if (!name) return
  clocks.set(name, player.group.add(player))
  document.dispatchEvent(new CustomEvent("workbench-player")) // an editor may wait for a player on this clock
}

async function render({ model, el }) {
  const holder = (await holderOf(model.get("holder"))) ?? el
  if (holder === el) el.style.width = "100%"
  const player = mount(holder, holder.workbenchPlayer ? null : bytesOf(model.get("payload")))
  const feed = () => player.feed(bytesOf(model.get("payload")))
  const tellBytes = () => player.tellBytes(model.get("dissected"))
  const tell = (selection) => {
    model.set("selection", selection)
    model.save_changes()
  }
  const joinClock = () => join(player, model.get("clock"))
  joinClock()
  model.on("change:clock", joinClock)
  model.on("change:payload", feed)
  model.on("change:dissected", tellBytes)
  player.onSelect = tell
  return () => {
    model.off("change:payload", feed)
    model.off("change:dissected", tellBytes)
    model.off("change:clock", joinClock)
    join(player, "")
    if (player.onSelect === tell) player.onSelect = null
    if (holder === el) player.dispose()
  }
}
export default { render }
