// The boxes below the map: the timeline with a mark for each message, the curves, and the panels with lanes.

const AXIS = 16
const LEFT = 52
const RIGHT = 10

// A box with an axis of time: a canvas for the content and one for the cursor. A press on it goes to that time.
class TimeBox {
  paintStill(_brush) {} // subclasses paint the content

  constructor(player, parent, className, label) {
    this.player = player
    this.box = element("div", `wb-time ${className}`, parent)
    this.box.setAttribute("aria-label", label)
    this.box.setAttribute("role", "img")
    this.canvases = [0, 1].map(() => element("canvas", "", this.box))
    this.brushes = this.canvases.map((canvas) => new Brush(canvas.getContext("2d")))
    this.range = null
    this.box.addEventListener("pointerdown", (event) => {
      this.isPressed = true
      this.box.setPointerCapture(event.pointerId)
      this.press(event)
    })
    this.box.addEventListener("pointermove", (event) => this.isPressed && this.press(event))
    for (const name of ["pointerup", "pointercancel"]) this.box.addEventListener(name, () => (this.isPressed = false))
    this.box.addEventListener("wheel", (event) => this.wheel(event), { passive: false })
    this.box.addEventListener("dblclick", () => this.player.setTimeRange(null))
  }

  resize(width, height) {
    this.width = width
    this.height = height
    this.ratio = window.devicePixelRatio || 1
    for (const canvas of this.canvases) {
      canvas.width = Math.round(width * this.ratio)
      canvas.height = Math.round(height * this.ratio)
      canvas.style.width = `${width}px`
      canvas.style.height = `${height}px`
    }
    this.isStill = false
  }

  at(seconds) {
    const [low, high] = this.player.timeRange
    return LEFT + ((seconds - low) / (high - low)) * (this.width - LEFT - RIGHT)
  }

  timeAt(event) {
    const [low, high] = this.player.timeRange
    const x = event.clientX - this.box.getBoundingClientRect().left
    return low + ((x - LEFT) / (this.width - LEFT - RIGHT)) * (high - low)
  }

  press(event) {
    this.player.jump(this.timeAt(event))
  }

  wheel(event) {
    if (!event.ctrlKey && !event.metaKey && !this.player.root.matches(":focus-within")) return
    event.preventDefault()
    const [low, high] = this.player.timeRange
    const factor = Math.exp(clamp(event.deltaY, -120, 120) / 300)
    const middle = this.timeAt(event)
    this.player.setTimeRange([middle - (middle - low) * factor, middle + (high - middle) * factor])
  }

  clear(brush) {
    brush.context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0)
    brush.context.globalAlpha = 1
    brush.context.clearRect(0, 0, this.width, this.height)
  }

  paint() {
    if (!this.width) return
    if (!this.isStill) {
      this.clear(this.brushes[0])
      this.paintAxis(this.brushes[0])
      this.paintStill(this.brushes[0])
      this.isStill = true
    }
    const brush = this.brushes[1]
    this.clear(brush)
    brush.strokes(this.player.colour("text"), 1.4)
    const x = this.at(this.player.time)
    if (x >= LEFT - 1 && x <= this.width) brush.segment(x, 0, x, this.height - AXIS + 3)
    brush.flushStrokes()
  }

  write(brush, text, x, y, align = "center") {
    const { context } = brush
    context.globalAlpha = 1
    context.fillStyle = this.player.colour("faint")
    context.font = `10px ${this.player.font}`
    context.textAlign = align
    context.textBaseline = "middle"
    context.fillText(text, x, y)
  }

  paintAxis(brush) {
    const [low, high] = this.player.timeRange
    const step = roundLength(((high - low) / (this.width - LEFT - RIGHT)) * 150)
    const y = this.height - AXIS
    brush.strokes(this.player.colour("grid"), 1)
    for (let time = Math.ceil(low / step) * step; time <= high; time += step) brush.segment(this.at(time), 0, this.at(time), y)
    brush.flushStrokes()
    const digits = Math.max(0, -Math.floor(Math.log10(step)))
    for (let time = Math.ceil(low / step) * step; time <= high; time += step)
      this.write(brush, `${writeTime(Math.abs(time) < 1e-9 ? 0 : time, digits)} s`, clamp(this.at(time), LEFT + 4, this.width - 16), y + 9)
  }
}

// The timeline: a mark for each message at its time and node. Nodes are in order of their distance to the first sink.
class Timeline extends TimeBox {
  feed(picture) {
    this.picture = picture
    this.isStill = false
    const count = picture.timeline.row.length
    this.step = 1 / Math.max(count, 1)
  }

  y(row) {
    return 3 + (1 - (row + 0.5) * this.step) * (this.height - AXIS - 8)
  }

  paintStill(brush) {
    const { row, ticks, label } = this.picture.timeline
    const size = clamp(240 / Math.max(row.length, 1), 2.5, 5)
    for (const [position, label] of ticks) this.write(brush, label, LEFT - 6, this.y(position), "right")
    const { context } = brush
    context.save()
    context.translate(9, (this.height - AXIS) / 2)
    context.rotate(-Math.PI / 2)
    this.write(brush, label, 0, 0)
    context.restore()
    this.paintSpans(brush)
    for (const layer of this.picture.layers) if (layer.on_timeline && this.player.isOn(layer.name)) this.paintMarks(brush, layer, size)
  }

  // Paint the intervals in which nodes are down (a bar in the node's line), or in which the whole network changes (a bar
  // at the top, and a pale band), each with its label if it has room.
  paintSpans(brush) {
    const { context } = brush
    const { row } = this.picture.timeline
    const ends = new Map() // height of a line of text -> the ends of its labels
    for (const { label, from, until, node, colour } of this.picture.timeline.spans ?? []) {
      const [x0, x1] = [from, until].map((time) => clamp(this.at(time), LEFT, this.width - RIGHT))
      if (x1 <= x0) continue
      const width = Math.max(x1 - x0, 1)
      const y = node < 0 ? 3 : this.y(row[node])
      context.fillStyle = colour[this.player.isDark]
      if (node < 0) {
        context.globalAlpha = 0.16
        context.fillRect(x0, 0, width, this.height - AXIS)
      }
      context.globalAlpha = node < 0 ? 0.9 : 0.45
      context.fillRect(x0, y - 1.5, width, 3)
      context.globalAlpha = 1
      context.fillRect(x0, y - 4, 1.5, 8)
      if (until < this.player.duration) context.fillRect(x1 - 1.5, y - 4, 1.5, 8)
      this.writeSpan(brush, label, x0 + 4, node < 0 ? 11 : y - 7 < 6 ? y + 8 : y - 7, ends, node < 0 ? 0 : 3)
    }
  }

  // Write a label unless it covers another one or leaves the box. `ends`: line of text -> where its labels begin and end.
  // `rim`: width of a rim around the letters in px.
  writeSpan(brush, label, x, y, ends, rim) {
    const { context } = brush
    const line = Math.round(y / 10)
    context.font = `10px ${this.player.font}`
    const end = x + context.measureText(label).width
    const boxes = [line - 1, line, line + 1].flatMap((one) => ends.get(one) ?? [])
    if (end > this.width - 2 || boxes.some(([low, high]) => low < end + 4 && high > x - 4)) return
    ends.set(line, [...(ends.get(line) ?? []), [x, end]])
    if (rim) {
      Object.assign(context, { lineWidth: rim, lineJoin: "round", textAlign: "left", textBaseline: "middle" })
      context.strokeStyle = this.player.colour("ground")
      context.strokeText(label, x, y)
    }
    this.write(brush, label, x, y, "left")
  }

  paintMarks(brush, layer, size) {
    const { context } = brush
    const isLoss = layer.mark == "loss"
    const side = layer.mark == "ring" ? size * 1.5 : isLoss ? size * 0.8 : size
    context.setLineDash([])
    for (const [look, taken] of this.takenBy(layer)) {
      if (look.chip && !this.player.isOn(look.chip)) continue
      context.fillStyle = look.colour[this.player.isDark]
      context.globalAlpha = (isLoss ? 0.4 : 0.85) * look.alpha
      this.paintTaken(context, taken, side)
    }
    context.globalAlpha = 1
  }

  get columns() {
    return Math.ceil(this.width) + 1
  }

  // Return for each look which pixels have a mark: 60,000 messages cover only a few thousand pixels.
  takenBy(layer) {
    const { from, node } = layer.table
    const { row } = this.picture.timeline
    const [start, perTick] = [this.at(0), this.at(this.picture.tick_s) - this.at(0)]
    const { columns } = this
    const found = new Map()
    for (let i = 0; i < layer.rows; i++) {
      const x = start + perTick * from[i]
      if (x < LEFT || x > this.width) continue
      const look = lookOf(layer, i)
      let taken = found.get(look)
      if (!taken) {
        taken = new Uint8Array(columns * Math.ceil(this.height))
        found.set(look, taken)
      }
      taken[Math.floor(this.y(row[node[i]])) * columns + Math.floor(x)] = 1
    }
    return found
  }

  // Paint one bar for all marks of a line that touch each other, because painting is slow.
  paintTaken(context, taken, side) {
    const { columns } = this
    for (let line = 0; line * columns < taken.length; line++) {
      const top = line + 0.5 - side / 2
      let begin = -1
      let end = -1
      for (let column = taken.indexOf(1, line * columns) - line * columns; column >= 0 && column < columns; column++) {
        if (!taken[line * columns + column]) continue
        if (begin >= 0 && column - end > side) {
          context.fillRect(begin + 0.5 - side / 2, top, end - begin + side, side)
          begin = column
        } else if (begin < 0) begin = column
        end = column
      }
      if (begin >= 0) context.fillRect(begin + 0.5 - side / 2, top, end - begin + side, side)
    }
  }
}

// The curves: counts over the whole run as step lines.
class CurvesBox extends TimeBox {
  legend = null

  feed(curves) {
    this.curves = curves
    this.isStill = false
    this.highest = Math.max(1e-9, ...curves.lines.map((line) => line.value.reduce((most, one) => Math.max(most, one), 0)))
    this.legend ??= element("div", "wb-curve-legend", this.box)
    this.legend.innerHTML = `<b>${escapeText(curves.y_label)}</b>` + curves.lines
      .map((line) => `<span><i style="background:${line.colour[this.player.isDark]}"></i>${escapeText(line.label)}</span>`)
      .join("")
  }

  paintStill(brush) {
    const bottom = this.height - AXIS - 2
    const y = (value) => bottom - (value / this.highest) * (bottom - 14)
    const step = roundLength(this.highest / 1.5)
    for (let value = 0; value <= this.highest; value += step) this.write(brush, `${+value.toPrecision(6)}`, LEFT - 6, y(value), "right")
    for (const line of this.curves.lines) {
      brush.strokes(line.colour[this.player.isDark], 1.8)
      for (let i = 0; i < line.time.length; i++) {
        const [x, next] = [this.at(line.time[i]), i + 1 < line.time.length ? this.at(line.time[i + 1]) : this.width - RIGHT]
        if (next < LEFT || x > this.width) continue
        brush.segment(Math.max(x, LEFT), y(line.value[i]), next, y(line.value[i]))
        if (i + 1 < line.time.length && next <= this.width) brush.segment(next, y(line.value[i]), next, y(line.value[i + 1]))
      }
      brush.flushStrokes()
    }
  }
}

// A panel with lanes of bars (mark "strip"), for example of the part of a key space that each node owns at this time.
class LanesBox {
  constructor(player, parent) {
    this.player = player
    this.box = element("div", "wb-lanes", parent)
    this.heading = element("h4", "", this.box)
    this.holder = element("div", "wb-lanes-canvas", this.box)
    this.canvas = element("canvas", "", this.holder)
    this.tip = element("div", "wb-tip", this.holder)
    this.tip.hidden = true
    this.brush = new Brush(this.canvas.getContext("2d"))
    this.canvas.addEventListener("pointermove", (event) => this.hover(event))
    this.canvas.addEventListener("pointerleave", () => (this.tip.hidden = true))
    this.canvas.addEventListener("click", (event) => {
      const found = this.stripAt(event)
      if (found) this.player.pickNode(found[0].table.node ? found[0].table.node[found[1]] : -1)
    })
  }

  feed(panel, layers) {
    this.panel = panel
    this.layers = layers
    this.heading.textContent = panel.title
    this.shown = null
  }

  get wanted() {
    return this.panel.lanes.length * 40 + 4
  }

  resize(width) {
    this.width = width
    this.height = this.wanted
    this.ratio = window.devicePixelRatio || 1
    this.canvas.width = Math.round(width * this.ratio)
    this.canvas.height = Math.round(this.height * this.ratio)
    this.canvas.style.width = `${width}px`
    this.canvas.style.height = `${this.height}px`
    this.shown = null
  }

  // Return the upper left corner, width and height of a bar. A row in lane n + 0.5 is in the lower half of lane n.
  rectangle(layer, row) {
    const { low, high } = this.panel
    const [begin, end, lane] = ["low", "high", "lane"].map((name) => valueAt(layer, name, row))
    const px = (this.width - LEFT - RIGHT) / (high - low)
    const part = lane - Math.floor(lane)
    const top = Math.floor(lane) * 40 + 4 + part * 40
    return [LEFT + (begin - low) * px, top, Math.max((end - begin) * px, 1), part ? 6 : 22]
  }

  paint() {
    if (!this.width) return
    const now = this.layers.filter((layer) => this.player.isOn(layer.name)).map((layer) => [layer, aliveRows(layer, this.player.tick)])
    if (this.shown && sameRows(this.shown, now)) return
    this.shown = now
    const { context } = this.brush
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0)
    context.globalAlpha = 1
    context.clearRect(0, 0, this.width, this.height)
    this.panel.lanes.forEach((lane, i) => {
      context.fillStyle = this.player.colour("faint")
      context.font = `10px ${this.player.font}`
      context.textAlign = "right"
      context.textBaseline = "middle"
      context.fillText(lane, LEFT - 6, i * 40 + 15)
    })
    for (const [layer, rows] of now) for (const row of rows) this.paintStrip(context, layer, row)
  }

  paintStrip(context, layer, row) {
    const look = lookOf(layer, row)
    const [x, y, width, height] = this.rectangle(layer, row)
    context.globalAlpha = look.alpha
    context.fillStyle = colourOf(layer, look, row, this.player.isDark)
    context.fillRect(x, y, width, height)
    context.globalAlpha = 1
    if (height < 10) return
    context.strokeStyle = this.player.colour("ground")
    context.lineWidth = width > 3 ? 1 : 0.3
    context.strokeRect(x, y, width, height)
    const text = layer.table.node ? `${this.picture.plan.id[layer.table.node[row]]}` : ""
    if (width < 8 * text.length + 4) return
    context.fillStyle = inkOn(context.fillStyle)
    context.font = `10px ${this.player.font}`
    context.textAlign = "center"
    context.fillText(text, x + width / 2, y + height / 2)
  }

  get picture() {
    return this.player.picture
  }

  stripAt(event) {
    const box = this.canvas.getBoundingClientRect()
    const [px, py] = [event.clientX - box.left, event.clientY - box.top]
    for (const [layer, rows] of [...(this.shown ?? [])].reverse())
      for (const row of [...rows].reverse()) {
        const [x, y, width, height] = this.rectangle(layer, row)
        if (px >= x - 1 && px <= x + width + 1 && py >= y && py <= y + height) return [layer, row]
      }
    return null
  }

  hover(event) {
    const found = this.stripAt(event)
    this.tip.hidden = !found
    if (!found) return
    const [layer, row] = found
    const { table } = layer
    const node = table.node ? `node <b>${this.picture.plan.id[table.node[row]]}</b><br>` : ""
    const word = table.text && table.text[row] >= 0 ? `${escapeText(layer.words[table.text[row]])}<br>` : ""
    this.tip.innerHTML = `${node}${word}${this.number(valueAt(layer, "low", row))} – ${this.number(valueAt(layer, "high", row) - 1)}`
    const box = this.canvas.getBoundingClientRect()
    this.tip.style.left = `${clamp(event.clientX - box.left + 10, 0, this.width - this.tip.offsetWidth)}px`
    this.tip.style.top = `${event.clientY - box.top + 12}px`
  }

  // A number of more than 52 bits is not exact.
  number(value) {
    const { bits } = this.panel
    if (!bits) return value.toLocaleString("en")
    return bits > 52 ? "…" : Math.round(value).toString(2).padStart(bits, "0")
  }
}

// Return the value of a row in a column, or 0 if the table lacks the column.
function valueAt(layer, name, row) {
  return layer.table[name] ? layer.table[name][row] : 0
}

// Return black or white, whichever is easier to read on a colour, ``#rrggbb``.
function inkOn(colour) {
  const part = (at) => parseInt(colour.slice(at, at + 2), 16)
  return 0.3 * part(1) + 0.59 * part(3) + 0.11 * part(5) > 140 ? "#1F2933" : "#FFFFFF"
}
