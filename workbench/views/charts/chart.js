// An interactive chart: Bokeh figures in the place of the plot areas of a chart's picture. Titles, legends and notes stay
// SVG elements. This text is appended to elements.js and theme.js.
//
// Charts and players of a page that show the same subject share what the user selects.

const CHART_STYLE = `
.wb-chart { position: relative; max-width: 100%; font: 12px/1.4 system-ui, 'DejaVu Sans', sans-serif; }
.wb-chart > svg { display: block; max-width: none !important; }
.wb-chart .wb-frame { position: absolute; }
.wb-chart .wb-entry { position: absolute; height: 17px; padding: 0; border: 0; background: none; cursor: pointer; border-radius: 3px; }
.wb-chart .wb-entry[aria-pressed="false"] { background: light-dark(#FFFFFFB8, #14181DB8); }
.wb-chart .wb-entry:focus-visible { outline: 2px solid #0072B2; }
.wb-chart .wb-tools { position: absolute; display: flex; gap: 2px; opacity: 0; transform: translateX(-100%); }
@media (hover: none) { .wb-chart .wb-tools { opacity: 0.6; } }
.wb-chart:hover .wb-tools, .wb-chart .wb-tools:focus-within { opacity: 1; }
.wb-chart .wb-tools button { font: 11px/1 system-ui, 'DejaVu Sans', sans-serif; padding: 3px 5px; cursor: pointer; border-radius: 3px;
  color: light-dark(#1F2933, #E4E8EC); background: light-dark(#FFFFFFD0, #14181DD0); border: 1px solid light-dark(#E6EAEE, #2B333C); }
.wb-chart .wb-tools button[aria-pressed="true"] { border-color: light-dark(#0072B2, #56B4E9); }
.wb-run { margin: 4px 0; font: 13px/1.4 system-ui, 'DejaVu Sans', sans-serif; }
.wb-run-bar { display: flex; flex-wrap: wrap; gap: 6px; align-items: center; margin: 2px 0; }
.wb-run-bar button { font: inherit; font-size: 12px; }`
const CHART_COLOURS = /(^|_)color$/
const DRAGS = { select: "Drag a rectangle to select points", zoom: "Drag a rectangle to zoom in" } // tools by name
const KINDS_OF_IDS = ["runs", "paths", "nodes"]
const LONG = 4_000 // lines with more points are thinned before they are drawn
const liveCharts = (globalThis.workbenchCharts ??= new Set()) // for tests and benchmarks/charts.py

async function inflateChart(packed) {
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))
  return new Response(stream).arrayBuffer()
}

// Load BokehJS once for a page and leave `window.Bokeh` alone. `fetchPacked()` returns its text, compressed with gzip.
function loadBokeh(version, fetchPacked) {
  const load = async () => {
    const text = new TextDecoder().decode(await inflateChart(await fetchPacked()))
    const scope = {}
    new Function(text).call(scope)
    scope.Bokeh.set_log_level("warn")
    return scope.Bokeh
  }
  return (globalThis[`workbenchBokeh${version}`] ??= load())
}

class LiveChart {
  onTap = null // called with the numbers of the runs at the point that the user clicks
  managers = [] // of Bokeh's views, one for each figure
  views = [] // of the figures
  picture = null // the elements of the static picture
  stage = null // the element that takes the place of the picture
  colours = new WeakMap() // model -> {property: its colour on a light page}
  long = new Map() // source of a long line or band -> all of its columns
  tickers = new WeakMap() // axis -> the ticker and labels of the picture, restored after a zoom
  listeners = [] // of the visual viewport, which Bokeh adds and never removes

  constructor(root, Bokeh) {
    this.root = root // its content is the picture
    this.Bokeh = Bokeh
    watchThemes(this) // which also calls applySelection()
    liveCharts.add(this)
  }

  // Show a chart: `chart` has the surroundings and the positions of frames, `items` a JSON document for each frame.
  async show(chart, items) {
    const stage = element("div", "wb-chart", this.root)
    stage.style.cssText = "position: absolute; visibility: hidden"
    stage.innerHTML = `<style>${CHART_STYLE}</style>${chart.surroundings}`
    this.picture ??= [...this.root.children].filter((child) => child !== stage)
    const managers = [], listeners = []
    // Bokeh never removes its listeners of the visual viewport (bokeh/bokeh#15298): store them for disposeViews.
    const port = globalThis.visualViewport
    if (port) {
      port.addEventListener = (...all) => {
        listeners.push(all)
        EventTarget.prototype.addEventListener.apply(port, all)
      }
    }
    try {
      for (const [i, item] of items.entries()) {
        const box = element("div", "wb-frame", stage)
        box.style.cssText = `left: ${chart.panels[i].x}px; top: ${chart.panels[i].y}px`
        const embedded = await this.Bokeh.embed.embed_item(item, box)
        managers.push(embedded)
        const { document: made } = figureViewOf(embedded).model
        if (!made.is_idle) await new Promise((done) => made.idle.connect(done))
      }
    } finally {
      if (port) delete port.addEventListener
    }
    const older = [this.managers, this.listeners]
    const views = managers.map(figureViewOf)
    Object.assign(this, { managers, views, listeners, chart, stage, colours: new WeakMap(), isDark: undefined })
    this.figures = views.map((view) => view.model)
    this.sources = this.figures.map((figure) => sourcesOf(figure))
    this.watch()
    this.addLegend()
    this.addTools()
    this.retheme()
    stage.style.cssText = ""
    for (const child of [...this.root.children]) if (child !== stage && !child.classList.contains("wb-run")) child.remove()
    this.root.prepend(stage)
    this.disposeViews(...older)
    this.shownAt = performance.now() // for benchmarks/charts.py
  }

  // Replace the numbers of the chart that is shown; `data`: for each frame its ranges, ticks and {source: columns}.
  feed(chart, data) {
    for (const [i, { frame, sources }] of data.entries()) {
      const figure = this.figures[i]
      const byName = this.sources[i]
      for (const range of ["x", "y"]) {
        const model = figure[`${range}_range`]
        const [start, end] = frame[range]
        const isZoomed = !isWhole(model) // the user's zoom remains
        model.setv({ reset_start: start, reset_end: end, ...(isZoomed ? {} : { start, end }) })
      }
      this.setTicks(figure, frame.ticks)
      for (const [name, columns] of Object.entries(sources)) {
        if (!byName[name]) continue
        this.long.delete(byName[name])
        if (columns.x?.length > LONG && !name.startsWith("marks") && isAscending(columns.x)) this.long.set(byName[name], columns)
        else byName[name].data = columns
      }
      this.thin(figure)
    }
    const svg = this.stage.querySelector(":scope > svg")
    if (svg && chart.surroundings != this.chart.surroundings) svg.outerHTML = chart.surroundings
    this.chart = chart
  }

  setTicks(figure, ticks) {
    for (const axis of axesOf(figure)) {
      const wanted = ticks[axis.name]
      const known = this.tickers.get(axis)
      known.overrides = new Map(wanted)
      known.ticker.ticks = wanted.map(([tick]) => tick)
      if (axis.ticker === known.ticker) axis.major_label_overrides = known.overrides
    }
  }

  // Draw only the points of long lines and bands that can be distinguished in the visible range.
  thin(figure) {
    const { start, end } = figure.x_range
    for (const { data_source: source } of figure.renderers) {
      const columns = this.long.get(source)
      if (columns) source.data = thinned(columns, start, end, figure.inner_width || figure.width)
    }
  }

  watch() {
    for (const [i, figure] of this.figures.entries()) {
      for (const axis of axesOf(figure)) this.tickers.set(axis, { ticker: axis.ticker, overrides: axis.major_label_overrides })
      let isWanted = false
      const zoom = () => {
        if (isWanted) return
        isWanted = true
        requestAnimationFrame(() => {
          isWanted = false
          this.useRoundTicks(figure)
          this.thin(figure)
        })
      }
      for (const range of [figure.x_range, figure.y_range]) range.change.connect(zoom)
      for (const source of Object.values(this.sources[i])) {
        if (source.name.startsWith("marks")) source.selected.change.connect(() => this.announceSelection(i))
      }
      figure.on_event("tap", () => setTimeout(() => this.tap(i), 0))
    }
  }

  // After a zoom, the ticks of the picture are too few or too many, and marks must not be drawn outside of the frame.
  useRoundTicks(figure) {
    const isWholeFigure = [figure.x_range, figure.y_range].every(isWhole)
    for (const renderer of figure.renderers) if (renderer.selection_glyph) renderer.level = isWholeFigure ? "annotation" : "glyph"
    for (const axis of axesOf(figure)) {
      const range = axis.name == "x axis" ? figure.x_range : figure.y_range
      const { ticker, overrides } = this.tickers.get(axis)
      const isNamed = [...overrides.values()].some((label) => !/^[-\d.,e+]+$/.test(label))
      if (isWhole(range) || isNamed) axis.setv({ ticker, major_label_overrides: overrides })
      else if (axis.ticker === ticker) {
        const round = new this.Bokeh.Models.BasicTicker({ desired_num_ticks: 6, num_minor_ticks: 0 })
        axis.setv({ ticker: round, major_label_overrides: new Map() })
      }
    }
  }

  addLegend() {
    for (const [i, panel] of this.chart.panels.entries()) {
      for (const [series, [x, y, width, name]] of panel.legend.entries()) {
        const entry = button(this.stage, "", `Show or hide: ${name}`, () => {
          const isOn = entry.getAttribute("aria-pressed") != "true"
          entry.setAttribute("aria-pressed", String(isOn))
          for (const renderer of this.figures[i].renderers) if (renderer.name == `series ${series}`) renderer.visible = isOn
        })
        entry.className = "wb-entry"
        entry.style.cssText = `left: ${x - 2}px; top: ${y - 12}px; width: ${width - 8}px`
        entry.setAttribute("aria-pressed", "true")
      }
    }
  }

  addTools() {
    for (const [i, figure] of this.figures.entries()) {
      const drags = figure.toolbar.tools.filter((tool) => tool.name in DRAGS)
      const bar = element("div", "wb-tools", this.stage)
      const [x, y] = this.chart.panels[i].tools
      bar.style.cssText = `left: ${x}px; top: ${y}px`
      const press = () => {
        for (const [k, one] of buttons.entries()) one.setAttribute("aria-pressed", String(drags[k].active))
      }
      const buttons = drags.map((drag) =>
        labelled(bar, drag.name, DRAGS[drag.name], () => {
          for (const tool of drags) tool.active = tool === drag
          press()
        }),
      )
      press()
      labelled(bar, "reset", "Reset the zoom and clear the selection", () => {
        for (const range of [figure.x_range, figure.y_range]) range.setv({ start: range.reset_start, end: range.reset_end })
        for (const source of Object.values(this.sources[i])) source.selected.indices = []
        this.announceSelection(i)
      })
    }
  }

  // Selection

  // Return {kind: set of ids} of the points that are selected in figure number i.
  selectedIn(i) {
    const ids = {}
    for (const source of Object.values(this.sources[i])) {
      for (const kind of KINDS_OF_IDS) {
        const column = source.data[kind]
        if (!column) continue
        ids[kind] ??= new Set()
        for (const row of source.selected.indices) for (const id of column[row]) ids[kind].add(id)
      }
    }
    return ids
  }

  // Series without selected points are pale while points of other series are selected.
  mute(figure) {
    const marks = figure.renderers.filter((renderer) => renderer.selection_glyph)
    const isAny = marks.some((renderer) => renderer.data_source.selected.indices.length)
    for (const renderer of marks) renderer.muted = isAny && !renderer.data_source.selected.indices.length
  }

  // Let the other figures of this chart, other charts and players select what is selected in figure number i.
  announceSelection(i) {
    if (this.isApplying) return
    this.mute(this.figures[i])
    const selected = this.selectedIn(i)
    this.select(selected, i)
    announceSelection(this.chart.subject, this, selected)
  }

  // Select what another chart or a player of the same subject has selected.
  applySelection({ subject, from, selected }) {
    if (from !== this && this.chart && subject == this.chart.subject) this.select(selected, -1)
  }

  // Select the points with these ids in all figures but one.
  select(selected, except) {
    this.isApplying = true
    for (const [i, figure] of this.figures.entries()) {
      if (i == except) continue
      for (const source of Object.values(this.sources[i])) {
        const kind = KINDS_OF_IDS.find((one) => source.data[one] && selected[one])
        if (!kind) continue
        const rows = []
        for (const [row, ids] of [...source.data[kind]].entries()) if ([...ids].some((id) => selected[kind].has(id))) rows.push(row)
        source.selected.indices = rows
      }
      this.mute(figure)
    }
    this.isApplying = false
  }

  tap(i) {
    const { runs } = this.selectedIn(i)
    if (runs?.size && this.onTap) this.onTap([...runs])
  }

  // Theme

  retheme() {
    if (!this.chart) return
    const isDark = this.chart.is_dark || isDarkAt(this.root)
    if (isDark === this.isDark) return
    this.isDark = isDark
    for (const figure of this.figures) {
      for (const model of figure.references()) {
        for (const name of Object.keys(model.properties)) {
          if (!CHART_COLOURS.test(name)) continue
          const light = this.lightColour(model, name)
          if (light === undefined) continue
          const colour = isDark ? this.chart.dark[light.text] : light.text
          model[name] = light.isValue ? { value: colour } : colour
        }
      }
    }
    this.stage.style.setProperty("color-scheme", isDark ? "dark" : "light")
  }

  // Return the colour of a property on a light page, or undefined if the chart has not set it.
  lightColour(model, name) {
    if (!this.colours.has(model)) this.colours.set(model, {})
    const known = this.colours.get(model)
    if (!(name in known)) {
      const set = model[name]
      const text = set?.value ?? set
      known[name] = typeof text == "string" && text in this.chart.dark ? { text, isValue: set?.value !== undefined } : undefined
    }
    return known[name]
  }

  // Disposal

  disposeViews(managers, listeners) {
    for (const manager of managers) {
      const made = manager.roots.map((view) => view.model.document).find((one) => one)
      for (const view of manager.roots) view.remove() // which also takes it out of Bokeh's index of all views
      made?.clear()
      const at = this.Bokeh.documents.indexOf(made)
      if (at >= 0) this.Bokeh.documents.splice(at, 1)
    }
    for (const [name, act, options] of listeners) globalThis.visualViewport?.removeEventListener(name, act, options)
  }

  dispose() {
    this.isGone = true // for watchThemes
    this.disposeViews(this.managers, this.listeners)
    this.managers = this.views = this.listeners = []
    if (this.stage) this.stage.replaceWith(...this.picture)
    liveCharts.delete(this)
    // JupyterLab never releases the model of a closed widget, and the model refers to this object.
    for (const name of ["root", "stage", "picture", "figures", "sources", "colours", "tickers", "long", "chart"]) this[name] = null
  }
}

// Thin a line or band: in each column of pixels, the first, last, lowest and highest point remain. Return the columns of
// these points. `columns.x` is ascending; `pixels` is the width of the range from start to end.
function thinned(columns, start, end, pixels) {
  const { x } = columns
  const names = Object.keys(columns)
  const lows = columns.y ?? columns.low
  const highs = columns.y ?? columns.high
  const rows = []
  let row = Math.max(countBelow(x, start) - 1, 0)
  const last = Math.min(countBelow(x, end) + 1, x.length)
  while (row < last) {
    const pixel = Math.floor(((x[row] - start) / (end - start)) * pixels)
    const first = row
    let low = row
    let high = row
    while (row < last && Math.floor(((x[row] - start) / (end - start)) * pixels) == pixel) {
      if (!(lows[row] >= lows[low])) low = row
      if (!(highs[row] <= highs[high])) high = row
      row++
    }
    rows.push(...new Set([first, low, high, row - 1].sort((a, b) => a - b)))
  }
  return Object.fromEntries(names.map((name) => [name, Float64Array.from(rows, (one) => columns[name][one])]))
}

// Return whether all values are numbers, in ascending order.
function isAscending(values) {
  for (let i = 1; i < values.length; i++) if (!(values[i] >= values[i - 1])) return false
  return true
}

// Return the number of values below a limit; the values are ascending.
function countBelow(values, limit) {
  let [low, high] = [0, values.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (values[middle] < limit) low = middle + 1
    else high = middle
  }
  return low
}

// Return the view of the figure that a manager of views has. Another view is for Bokeh's messages.
function figureViewOf(manager) {
  return manager.roots.find((view) => view.model.x_range)
}

// Add a button with a name for screen readers that is longer than its text.
function labelled(parent, text, name, act) {
  const made = button(parent, text, name, act)
  made.setAttribute("aria-label", name)
  return made
}

function isWhole(range) {
  return range.start == range.reset_start && range.end == range.reset_end
}

function axesOf(figure) {
  return [...figure.below, ...figure.left]
}

// Return {name: source} of a figure.
function sourcesOf(figure) {
  const found = {}
  for (const { data_source } of figure.renderers) found[data_source.name] = data_source
  return found
}
