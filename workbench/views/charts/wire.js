// The widget of an interactive chart; see living.py. This text is appended to chart.js.

const holderOf = (name) => waitFor(() => document.querySelector(`[data-chart="${name}"]`), 200, 30)
const bytesOf = (view) => new Uint8Array(view.buffer, view.byteOffset, view.byteLength)

class ChartWire {
  constructor(model, root) {
    this.model = model
    this.root = root
    this.requests = 0
    this.waiting = new Map() // id of a request -> functions that end it
    this.drawing = Promise.resolve() // figures are drawn one after the other
    this.onMessage = (message, buffers) => this.take(message, buffers)
    model.on("msg:custom", this.onMessage)
    this.sizes = new ResizeObserver(() => this.fit())
  }

  // Send a request to the kernel; return its answer, or throw its error.
  ask(want, more = {}) {
    const id = ++this.requests
    return new Promise((done, fail) => {
      this.waiting.set(id, [done, fail])
      this.model.send({ want, id, ...more })
    })
  }

  take(message, buffers) {
    if (message.kind == "feed") return this.feed(message, buffers)
    const [done, fail] = this.waiting.get(message.id) ?? []
    this.waiting.delete(message.id)
    if (message.error) fail?.(new Error(message.error))
    else done?.([message, buffers])
  }

  async start() {
    const version = this.model.get("version")
    const Bokeh = await loadBokeh(version, async () => bytesOf((await this.ask("bokeh"))[1][0]))
    if (this.isGone) return
    this.live = new LiveChart(this.root, Bokeh)
    this.live.onTap = (runs) => this.openRun(runs, 0)
    await this.draw()
    this.sizes.observe(this.root)
  }

  draw() {
    this.drawing = this.drawing.catch(() => {}).then(() => this.drawNow())
    return this.drawing
  }

  async drawNow() {
    this.width = this.root.clientWidth
    const [chart, buffers] = await this.ask("figure", { width: this.width })
    if (this.isGone) return
    const items = JSON.parse(new TextDecoder().decode(await inflateChart(bytesOf(buffers[0]))))
    const { live } = this
    await live.show(chart, items)
    if (this.isGone) return live.dispose()
    if (chart.data.length) live.feed(chart, readColumns(chart.data, buffers.slice(1)))
    this.natural = chart.natural
    // Charts that arrived meanwhile are newer.
    const [message, newer] = this.pending ?? []
    this.pending = null
    if (message?.state > chart.state) this.feed(message, newer) // which waits for the end of this function
  }

  // Request a chart of another width if the page has become narrower than the chart, or wider again.
  fit() {
    const width = this.root.clientWidth
    clearTimeout(this.fitting)
    if (!width || this.isGone || Math.min(width, this.natural) == Math.min(this.width, this.natural)) return
    this.fitting = setTimeout(() => this.draw(), 200)
  }

  async feed(message, buffers) {
    this.pending = [message, buffers]
    await this.drawing.catch(() => {})
    if (this.isGone || !this.live?.chart || this.pending?.[0] !== message) return
    this.pending = null
    if (message.state <= this.live.chart.state) return
    if (message.is_other) return this.draw()
    this.live.feed(message, readColumns(message.data, buffers))
  }

  // Execute run number `runs[at]` of the table again, and show it in a player below the chart.
  async openRun(runs, at) {
    if (!this.live.chart.can_open) return
    const bar = this.runBar(runs, at)
    const words = bar.querySelector("output")
    words.textContent = "running …"
    let message, buffers
    try {
      ;[message, buffers] = await this.ask("run", { number: runs[at] })
    } catch (error) {
      words.textContent = `this run failed: ${error.message}`
      return
    }
    if (this.isGone || !bar.isConnected) return // closed, or another run was requested
    words.textContent = message.caption
    const { mount } = await this.player()
    const payload = bytesOf(buffers[0]).slice().buffer
    if (this.runPlayer?.root.isConnected) this.runPlayer.feed(payload)
    else this.runPlayer = mount(element("div", "", bar.parentElement), payload)
  }

  runBar(runs, at) {
    const box = this.root.querySelector(":scope > .wb-run") ?? element("div", "wb-run", this.root)
    box.querySelector(":scope > .wb-run-bar")?.remove()
    const bar = element("div", "wb-run-bar")
    box.prepend(bar)
    const add = (text, title, act, isOff) => {
      button(bar, text, title, act).disabled = isOff
    }
    if (runs.length > 1) {
      add("◀", "Previous run of this point", () => this.openRun(runs, at - 1), at == 0)
      add("▶", "Next run of this point", () => this.openRun(runs, at + 1), at == runs.length - 1)
    }
    element("output", "", bar)
    add("✕", "Close this run", () => {
      this.runPlayer?.dispose()
      this.runPlayer = null
      box.remove()
    }, false)
    return bar
  }

  // Return the player's module, which a page loads once.
  async player() {
    const load = async () => {
      const [, buffers] = await this.ask("player")
      const place = URL.createObjectURL(new Blob([await inflateChart(bytesOf(buffers[0]))], { type: "text/javascript" }))
      const module = await import(place)
      URL.revokeObjectURL(place)
      return module
    }
    return (globalThis[this.model.get("player")] ??= load())
  }

  dispose() {
    this.isGone = true
    this.model.off("msg:custom", this.onMessage)
    this.sizes.disconnect()
    clearTimeout(this.fitting)
    this.runPlayer?.dispose()
    this.live?.dispose()
    this.live = this.root = this.runPlayer = this.pending = null // see LiveChart.dispose
    this.waiting.clear()
  }
}

// Return the data of frames in which {"buffer": i} is replaced by the numbers in this buffer.
function readColumns(data, buffers) {
  const numbers = buffers.map((view) => new Float64Array(bytesOf(view).slice().buffer))
  const read = (value) => (value?.buffer !== undefined ? numbers[value.buffer] : Array.isArray(value) ? value.map(read) : value)
  return data.map(({ frame, sources }) => ({
    frame,
    sources: Object.fromEntries(
      Object.entries(sources).map(([name, columns]) => [
        name,
        Object.fromEntries(Object.entries(columns).map(([column, value]) => [column, read(value)])),
      ]),
    ),
  }))
}

function startWire(model, root) {
  const wire = new ChartWire(model, root)
  wire.start().catch((error) => console.error("workbench: the interactive chart could not be loaded, so its picture stays:", error))
  return wire
}

// A chart in the output of a cell: the output has the picture, and this widget has no visible part. The picture may come
// later than the widget, but anywidget waits only two seconds for this function.
function initialize({ model }) {
  const name = model.get("holder")
  if (!name) return
  const started = holderOf(name).then((root) => root && startWire(model, root))
  return () => started.then((wire) => wire?.dispose())
}

// A chart in a layout of widgets: the widget has the picture.
function render({ model, el }) {
  if (model.get("holder")) return
  const root = document.createElement("div")
  root.innerHTML = model.get("picture")
  el.style.width = "100%"
  el.append(root)
  const wire = startWire(model, root)
  const redraw = () => {
    if (!wire.live?.chart) root.innerHTML = model.get("picture")
  }
  model.on("change:picture", redraw)
  return () => {
    model.off("change:picture", redraw)
    wire.dispose()
  }
}
export default { initialize, render }
