// Start all steppers of a page. Each shows those groups of its drawing that list the present step in `data-steps`, such
// as "0-3 7". The controls are made here: without a script, as in a notebook that is not trusted, they have no use.
for (const root of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll(".wb-stepper:not([data-ready])"))) {
  if (!root.querySelector("svg")) continue // a stepper in an output that is not trusted
  root.dataset.ready = ""
  root.insertAdjacentHTML("afterbegin", `<div class="wb-steps">
    <button type="button" data-lm-suppress-shortcuts="true" aria-label="previous">◀</button><label></label>
    <input type="range" data-lm-suppress-shortcuts="true" min="0">
    <button type="button" data-lm-suppress-shortcuts="true" aria-label="next">▶</button><output></output></div>`)
  const [slider, name] = [root.querySelector("input"), root.querySelector("output")]
  const names = JSON.parse(root.dataset.names)
  slider.max = String(names.length - 1)
  slider.setAttribute("aria-label", root.dataset.description)
  root.querySelector("label").textContent = root.dataset.description
  const groups = Array.from(root.querySelectorAll("[data-steps]"), (group) => ({
    group,
    spans: group.getAttribute("data-steps").split(" ").map((span) => span.split("-").map(Number)),
  }))
  const show = (step) => {
    slider.value = step
    step = Number(slider.value)
    name.textContent = names[step]
    slider.setAttribute("aria-valuetext", names[step])
    for (const { group, spans } of groups)
      group.toggleAttribute("hidden", !spans.some(([first, last = first]) => first <= step && step <= last))
  }
  const move = (by) => show(Number(slider.value) + by)
  slider.addEventListener("input", () => show(slider.value))
  const [back, on] = root.querySelectorAll("button")
  back.addEventListener("click", () => move(-1))
  on.addEventListener("click", () => move(1))
  root.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1, Home: -names.length, End: names.length }[event.key]
    if (by === undefined) return
    event.preventDefault()
    event.stopPropagation()
    move(by)
  })
  show(0)
}
