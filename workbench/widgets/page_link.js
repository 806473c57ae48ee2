// The browser's side of PageLink: it opens the scenario in the address, shows links, and takes files that are dropped.

// Return the lab around an element, once it is in the page. A busy machine may take minutes to show a lab.
async function labAround(el) {
  await waitFor(() => el.isConnected, Number.POSITIVE_INFINITY)
  return waitFor(() => el.closest(".wb-lab"))
}

const playerIn = (lab) => [...lab.querySelectorAll(".wb-player")].map((root) => root.workbenchPlayer).find((one) => one?.picture)

// Show the moment and the layers of a link as soon as the player shows the run of its scenario.
async function showMoment(lab, subject, fragment) {
  const shows = (player) => player?.picture.subject == subject && !player.picture.is_preview
  const player = await waitFor(() => [playerIn(lab)].find(shows), 1200)
  player?.applyFragment(fragment)
}

// Let the lab open files that are dropped on it; return a function that ends this.
function takeDrops(lab, model) {
  const end = new AbortController()
  const { signal } = end
  const hasFile = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files")
  lab.addEventListener("dragover", (event) => {
    if (!hasFile(event)) return
    event.preventDefault()
    lab.classList.add("wb-drop")
  }, { signal })
  lab.addEventListener("dragleave", (event) => {
    if (!lab.contains(event.relatedTarget)) lab.classList.remove("wb-drop")
  }, { signal })
  lab.addEventListener("drop", async (event) => {
    if (!hasFile(event)) return
    event.preventDefault()
    event.stopPropagation()
    lab.classList.remove("wb-drop")
    const [file] = event.dataTransfer.files
    model.send({ dropped: file.name }, undefined, [await file.arrayBuffer()])
  }, { signal })
  return () => end.abort()
}

async function render({ model, el }) {
  const row = document.createElement("label")
  row.className = "wb-page-link"
  row.hidden = true
  const field = Object.assign(document.createElement("input"), { readOnly: true })
  field.setAttribute("aria-label", "Link to this scenario and moment")
  field.addEventListener("focus", () => field.select())
  row.append("Link to this scenario and moment: ", field)
  el.append(row)
  const lab = await labAround(el)
  if (!lab) return
  const take = (message) => {
    if (message.subject) showMoment(lab, message.subject, message.fragment)
    if (!message.link) return
    const player = playerIn(lab)
    const address = `${location.href.split("#")[0]}#${message.link}${player ? `&${player.fragment}` : ""}`
    field.value = address
    row.hidden = false
    field.focus()
  }
  model.on("msg:custom", take)
  const endDrops = takeDrops(lab, model)
  if (location.hash.startsWith("#s=")) {
    model.send({ opened: location.hash })
    history.replaceState(null, "", location.href.split("#")[0]) // a reload continues with the stored lab
  }
  return () => {
    model.off("msg:custom", take)
    endDrops()
  }
}
export default { render }
