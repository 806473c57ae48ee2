// Workarounds for ipywidgets and JupyterLab: controls get names, and closed widgets are released from the page's memory.

const KERNEL_EVERY_MS = 2000

// Name the handles of sliders, the fields, and the buttons with a symbol; ipywidgets names only controls with a description.

function nameControls(root) {
  for (const control of root.querySelectorAll(":is(input, select, textarea):not([aria-label])")) {
    if (control.labels?.length && control.labels[0].textContent.trim()) continue
    const name = control.closest(".wb-field")?.querySelector("span[title]")?.textContent || control.closest("[title]")?.title || control.title
    if (name) control.setAttribute("aria-label", name)
  }
  for (const control of root.querySelectorAll("button[title]:not([aria-label])"))
    if (!/\w/.test(control.textContent)) control.setAttribute("aria-label", control.title)
  for (const handle of root.querySelectorAll(".wb-field .noUi-handle:not([aria-label])")) {
    const name = handle.closest(".wb-field").querySelector("span[title]")
    if (name) handle.setAttribute("aria-label", name.textContent)
  }
  for (const handle of root.querySelectorAll(".wb-logarithm .noUi-handle")) sayPower(handle)
}

// The position of a logarithmic slider is the logarithm of its value. Let screen readers read the value and its unit.
function sayPower(handle) {
  const said = handle.getAttribute("aria-valuetext")
  if (said === handle.dataset.said || !Number.isFinite(parseFloat(said))) return
  const unit = handle.closest(".wb-field")?.querySelector(".wb-unit")?.textContent ?? ""
  handle.dataset.said = `${+(10 ** parseFloat(said)).toPrecision(3)} ${unit}`.trim()
  handle.setAttribute("aria-valuetext", handle.dataset.said)
}

// Return whether the kernel of a widget's model was shut down or restarted. JupyterLab itself marks only a restart.
function hasNoKernel(model) {
  return !model.comm_live || !!model.comm?.jsServicesComm?.isDisposed
}

// Return the outermost panel around an element, once the element is in the page.
function outermost(el) {
  return waitFor(() => {
    let panel = el.closest(".wb-lab, .wb-part")
    for (let next = panel; next; next = panel.parentElement?.closest(".wb-lab, .wb-part")) panel = next
    return el.isConnected && panel
  })
}

// JupyterLab 4 never releases the browser's side of a closed comm. Its callbacks keep the widget's model and views in
// memory, some 4,000 elements of a lab whose cell is run again. So remove the callbacks.
function letGoOfModels(model) {
  wrapOnce(kindWith(model, "_handle_comm_closed"), "close", (close) => function (...how) {
    const end = this.comm?.jsServicesComm
    const done = close.apply(this, how)
    if (end) end.onClose = end.onMsg = undefined
    return done
  })
}

// A shared layout or style keeps a view for each element that ever had it. So remove the view with the element.
function letGoOfViews(view) {
  wrapOnce(kindWith(view, "setLayout"), "remove", (remove) => function (...how) {
    for (const look of [this.layoutPromise, this.stylePromise]) look?.then((one) => one?.remove().model.off("msg:custom"))
    return remove.apply(this, how)
  })
}

// Replace a method of a prototype, once for all style sheets of a page. `wrapped` returns the new method, given the old one.
function wrapOnce(kind, name, wrapped) {
  if (!kind || kind.letsGo) return
  kind.letsGo = true
  kind[name] = wrapped(kind[name])
}

// Return the prototype of an object that defines this method.
function kindWith(one, method) {
  while (one && !Object.hasOwn(one, method)) one = Object.getPrototypeOf(one)
  return one
}

// Return the view of the element that has this layout, or undefined if the layout is closed.
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
  // If a style sheet of another panel has named the controls already, do nothing.
  if (!root || root.isNamed) return
  root.isNamed = true
  let isWanted = false
  const watch = new MutationObserver(() => {
    if (isWanted) return
    isWanted = true
    setTimeout(() => {
      isWanted = false
      nameControls(root)
    }, 100)
  })
  const asking = setInterval(() => root.classList.toggle("wb-dead", hasNoKernel(layout)), KERNEL_EVERY_MS)
  watch.observe(root, { childList: true, subtree: true, attributes: true, attributeFilter: ["aria-valuetext"] })
  nameControls(root)
  return () => clearInterval(asking)
}
export default { render }
