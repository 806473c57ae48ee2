// The page of a sweep; see views/sweeps/page.py. This text is appended to the player's module and to chart.js.

const packedBytes = (text) => Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0))

class SweepPage {
  columns = null // of all runs, as bytes
  live = [] // the charts that are alive

  constructor({ axes, runs, charts }) {
    this.axes = axes
    this.runs = runs
    this.charts = charts
    this.form = document.querySelector(".wb-sweep-axes")
    this.caption = document.querySelector(".wb-sweep-run")
    this.table = document.querySelector(".metrics")
    this.sliders = axes.map((axis) => this.slider(axis))
  }

  slider({ title, values }) {
    const label = element("label", "", this.form)
    element("span", "", label, title)
    const made = element("input", "", label)
    Object.assign(made, { type: "range", min: 0, max: values.length - 1, step: 1, value: 0 })
    const shown = element("output", "", label, values[0])
    made.setAttribute("aria-label", title)
    made.addEventListener("input", () => {
      const at = this.sliders.map((one) => Number(one.value))
      const number = this.axes[0].at.findIndex((_, row) => this.axes.every((axis, i) => axis.at[row] == at[i]))
      this.choose(number)
    })
    made.show = (at) => {
      made.value = at
      made.setAttribute("aria-valuetext", values[at])
      shown.textContent = values[at]
    }
    return made
  }

  // Show the run in this row of the sweep's table.
  async choose(number) {
    for (const [i, slider] of this.sliders.entries()) slider.show(number < 0 ? Number(slider.value) : this.axes[i].at[number])
    const run = this.runs.find((one) => one.number == number)
    if (!run) {
      this.caption.textContent = "The sweep has no result for these values."
      return
    }
    this.chosen = number
    history.replaceState(null, "", `#run=${number}`)
    this.caption.textContent = `${run.caption} · scenario ${run.hash}`
    this.table.innerHTML = run.metrics.map(([name, value]) => `<tr><td>${escapeText(name)}</td><td>${escapeText(value)}</td></tr>`).join("")
    const payload = await this.payloadOf(run)
    if (this.chosen != number) return
    if (this.player) this.player.feed(payload)
    else this.player = mount(document.querySelector(".wb-sweep-player"), payload)
    for (const chart of this.live)
      chart.applySelection({ subject: chart.chart.subject, from: null, selected: { runs: new Set([number]) } })
  }

  // Return the payload of a run: see payload.js and payload.py.
  async payloadOf({ header, at }) {
    this.columns ??= packedBytes(document.getElementById("wb-columns").textContent)
    const columns = new Uint8Array(await inflateChart(this.columns.slice(...at)))
    const text = new TextEncoder().encode(header)
    const start = 8 + Math.ceil(text.length / 8) * 8
    const payload = new Uint8Array(start + columns.length)
    new DataView(payload.buffer).setUint32(4, text.length, true)
    payload.set(text, 8)
    payload.set(columns, start)
    return payload.buffer
  }

  // Replace the pictures of charts by figures.
  async draw() {
    if (!this.charts.length) return
    const Bokeh = await loadBokeh("", async () => packedBytes(document.getElementById("wb-bokeh").textContent))
    for (const [i, root] of [...document.querySelectorAll(".wb-sweep-chart")].entries()) {
      const [wide, narrow] = this.charts[i]
      const { items, ...chart } = root.clientWidth < wide.width ? narrow : wide
      const live = new LiveChart(root, Bokeh)
      live.onTap = (runs) => this.choose(runs[0])
      await live.show(chart, JSON.parse(new TextDecoder().decode(await inflateChart(packedBytes(items)))))
      this.live.push(live)
    }
    await this.choose(this.chosen)
  }
}

// Fill the page, which is around the element `root`. `packed`: JSON as bytes.
async function startSweep(root, packed) {
  root.remove()
  const data = JSON.parse(new TextDecoder().decode(packed))
  const page = (globalThis.workbenchSweep = new SweepPage(data))
  const wanted = Number(new URLSearchParams(location.hash.slice(1)).get("run"))
  await page.choose(data.runs.some(({ number }) => number == wanted) ? wanted : data.runs[0].number)
  await page.draw()
}
export { startSweep as mount }
