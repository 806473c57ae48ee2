// Names the handles of sliders: ipywidgets gives them none, and a screen reader reads numbers without saying of what.

function nameHandles(root) {
  for (const handle of root.querySelectorAll(".wb-field .noUi-handle:not([aria-label])")) {
    const name = handle.closest(".wb-field").querySelector("span[title]")
    if (name) handle.setAttribute("aria-label", name.textContent)
  }
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

async function render({ el }) {
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
  watch.observe(root, { childList: true, subtree: true })
  nameHandles(root)
}
export default { render }
