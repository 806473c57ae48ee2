// What ipywidgets and JupyterLab leave undone: sliders without names, and closed widgets that stay in the page's memory.

// A handle has no name, and a screen reader reads numbers without saying of what.

function nameHandles(root) {
  for (const handle of root.querySelectorAll(".wb-field .noUi-handle:not([aria-label])")) {
    const name = handle.closest(".wb-field").querySelector("span[title]")
    if (name) handle.setAttribute("aria-label", name.textContent)
  }
  for (const handle of root.querySelectorAll(".wb-logarithm .noUi-handle")) sayPower(handle)
}

// A slider over decades stands at the logarithm of its value; what is read is the value, with its unit.
function sayPower(handle) {
  const said = handle.getAttribute("aria-valuetext")
  if (said === handle.dataset.said || !Number.isFinite(parseFloat(said))) return
  const unit = handle.closest(".wb-field")?.querySelector(".wb-unit")?.textContent ?? ""
  handle.dataset.said = `${+(10 ** parseFloat(said)).toPrecision(3)} ${unit}`.trim()
  handle.setAttribute("aria-valuetext", handle.dataset.said)
}

// The outermost part that an element is in, once it is in the page.
async function outermost(el) {
  for (let waited = 0; waited < 200; waited++) {
    let found = el.closest(".wb-lab, .wb-part")
    for (let next = found; next; next = found.parentElement?.closest(".wb-lab, .wb-part")) found = next
    if (found && el.isConnected) return found
    await new Promise((done) => setTimeout(done, 50))
  }
  return null
}

// JupyterLab 4's end of a closed comm stays with its kernel, which tells it of restarts, and keeps what was to be called
// at its end: the widget's model, its views, and some 4,000 elements of a lab whose cell is run again.
function letGoOfModels(model) {
  wrapOnce(kindWith(model, "_handle_comm_closed"), "close", (close) => function (...how) {
    const end = this.comm?.jsServicesComm
    const done = close.apply(this, how)
    if (end) end.onClose = end.onMsg = undefined
    return done
  })
}

// A layout or a style that others have, too, keeps a view for each element that had it, and calls it with messages, of
// which there are none.
function letGoOfViews(view) {
  wrapOnce(kindWith(view, "setLayout"), "remove", (remove) => function (...how) {
    for (const look of [this.layoutPromise, this.stylePromise]) look?.then((one) => one?.remove().model.off("msg:custom"))
    return remove.apply(this, how)
  })
}

// Puts another method in the place of a prototype's, once for all skins of a page. The new one is made of the old one.
function wrapOnce(kind, name, wrapped) {
  if (!kind || kind.letsGo) return
  kind.letsGo = true
  kind[name] = wrapped(kind[name])
}

// The prototype, of all that something is, that has this method.
function kindWith(one, method) {
  while (one && !Object.hasOwn(one, method)) one = Object.getPrototypeOf(one)
  return one
}

// A view of ipywidgets, that of the element which a layout is for; nothing once the layout is closed.
async function viewOf(layout) {
  for (let waited = 0; waited < 100 && layout?.comm; waited++) {
    const [found] = Object.values(layout.views ?? {})
    if (found) return (await found).options?.parent
    await new Promise((done) => setTimeout(done, 50))
  }
}

async function render({ model, el }) {
  const layout = model.get("layout")
  letGoOfModels(layout)
  viewOf(layout).then(letGoOfViews)
  const root = await outermost(el)
  // The skins of the parts within one find it worn already.
  if (!root || root.isNamed) return
  root.isNamed = true
  let isWanted = false
  const watch = new MutationObserver(() => {
    if (isWanted) return
    isWanted = true
    setTimeout(() => {
      isWanted = false
      nameHandles(root)
    }, 100)
  })
  watch.observe(root, { childList: true, subtree: true, attributes: true, attributeFilter: ["aria-valuetext"] })
  nameHandles(root)
}
export default { render }
