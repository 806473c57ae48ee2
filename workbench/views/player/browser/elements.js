// Elements of a page, and waiting for them.

function element(name, className, parent, text = "") {
  const made = document.createElement(name)
  if (className) made.className = className
  if (text) made.textContent = text
  parent?.append(made)
  return made
}

function button(parent, text, title, act) {
  const made = element("button", "", parent, text)
  made.type = "button"
  made.title = title
  if (!/\w/.test(text)) made.setAttribute("aria-label", title) // a symbol alone does not name the button
  made.dataset.lmSuppressShortcuts = "true"
  made.addEventListener("click", act)
  return made
}

// Call `look` again and again until it returns something, and return that; null after `times` calls.
async function waitFor(look, times = 200, pause_ms = 50) {
  for (let count = 0; count < times; count++) {
    const result = look()
    if (result) return result
    await new Promise((done) => setTimeout(done, pause_ms))
  }
  return null
}
