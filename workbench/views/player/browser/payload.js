// A payload: the data of a run as columns in one buffer, made by payload.py.
//
// The header, in JSON, gives the place of each column. Times are whole ticks (of header.tick_s seconds), nodes are
// indices of the plan's arrays, texts are indices of lists.

const KINDS = { i1: Int8Array, u1: Uint8Array, i2: Int16Array, u2: Uint16Array, i4: Int32Array, u4: Uint32Array, f4: Float32Array, f8: Float64Array }

// Return the run in an ArrayBuffer or DataView. Columns are views of the buffer; only an unaligned buffer is copied.
function readPayload(data) {
  let buffer = data.buffer ?? data
  let start = data.byteOffset ?? 0
  if (start % 8) [buffer, start] = [buffer.slice(start, start + data.byteLength), 0]
  const length = new DataView(buffer, start).getUint32(4, true)
  const text = new TextDecoder().decode(new Uint8Array(buffer, start + 8, length))
  const body = start + 8 + Math.ceil(length / 8) * 8
  const columnOf = ({ column, at, rows, all }) =>
    all === undefined ? new KINDS[column](buffer, body + at, rows) : new KINDS[column](rows).fill(all)
  const picture = JSON.parse(text, (_, value) => (value?.column ? columnOf(value) : value))
  for (const layer of picture.layers) prepareLayer(layer)
  prepareChanges(picture.plan)
  return picture
}

function prepareLayer(layer) {
  const { from, until } = layer.table
  layer.rows = from.length
  layer.longest = 0
  for (let i = 0; until && i < from.length; i++) layer.longest = Math.max(layer.longest, until[i] - from[i])
}

// Return the rows of a layer with from <= tick < until, ascending.
function aliveRows(layer, tick) {
  const { from, until } = layer.table
  const rows = []
  const end = countUpTo(from, tick)
  for (let i = countUpTo(from, tick - layer.longest - 1); i < end; i++) if (until[i] > tick) rows.push(i)
  return rows
}

// Return the index after the last value <= x. The values are ascending; only [low, high) is searched.
function countUpTo(values, x, low = 0, high = values.length) {
  while (low < high) {
    const middle = (low + high) >> 1
    if (values[middle] <= x) low = middle + 1
    else high = middle
  }
  return low
}

// Return y at x: linear between points with ascending xs, constant outside of them.
function interpolate(xs, ys, x) {
  const i = countUpTo(xs, x)
  if (i == 0) return ys[0]
  if (i == xs.length) return ys[i - 1]
  const width = xs[i] - xs[i - 1]
  return width > 0 ? ys[i - 1] + ((x - xs[i - 1]) / width) * (ys[i] - ys[i - 1]) : ys[i]
}

function clamp(value, low, high) {
  return Math.min(Math.max(value, low), high)
}

function escapeText(text) {
  return String(text).replace(/[&<>"]/g, (sign) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[sign])
}

// Return a time in seconds as text with so many decimals.
function writeTime(seconds, digits = 3) {
  return seconds.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits })
}

// Networks that change: the positions of nodes and the links of each time

// Prepare the plan of a run. Its own positions and links are those at the begin of the run.
function prepareChanges(plan) {
  const { tracks, links } = plan
  if (tracks) {
    plan.x = Float64Array.from(plan.x)
    plan.y = Float64Array.from(plan.y)
    tracks.indexOf = new Map(Array.from(tracks.nodes, (node, i) => [node, i]))
  }
  if (links) {
    links.layer = { rows: 0, longest: 0, table: links }
    prepareLayer(links.layer)
    links.state = -1
  }
}

// Return the index of the first vertex of a moving node, and of the vertex after its last one.
function verticesOf({ first, time }, moving) {
  return [first[moving], moving + 1 < first.length ? first[moving + 1] : time.length]
}

// Return the position [x, y] in m of a moving node at a tick: linear between vertices.
function positionOn(tracks, moving, tick) {
  const { time, x, y } = tracks
  const [low, high] = verticesOf(tracks, moving)
  const next = clamp(countUpTo(time, tick, low, high), low, high - 1)
  const last = Math.max(next - 1, low)
  const width = time[next] - time[last]
  const share = width > 0 ? clamp((tick - time[last]) / width, 0, 1) : 0
  return [x[last] + share * (x[next] - x[last]), y[last] + share * (y[next] - y[last])]
}

// Move the nodes of a plan to their positions at a tick. Return whether any node has another position than before.
function moveNodes(plan, tick) {
  const { tracks, x, y } = plan
  let hasMoved = false
  for (let i = 0; i < tracks.nodes.length; i++) {
    const node = tracks.nodes[i]
    const [newX, newY] = positionOn(tracks, i, tick)
    hasMoved ||= newX != x[node] || newY != y[node]
    x[node] = newX
    y[node] = newY
  }
  return hasMoved
}

// Replace the links of a plan by those at a tick. Return whether they have changed.
function relink(plan, tick, shades) {
  const { links } = plan
  const state = countUpTo(links.times, tick) - 1
  if (state == links.state) return false
  links.state = state
  const rows = aliveRows(links.layer, state)
  for (const name of ["a", "b", "ab", "ba"]) plan[name] = Int32Array.from(rows, (row) => links[name][row])
  plan.shade = Int32Array.from(rows, (row) => Math.round(((shades - 1) * Math.max(links.ab[row], links.ba[row])) / 100))
  return true
}

// Return the part of a track from one tick to another as a list of [tick, x, y], with both of its ends.
function trackPiece(tracks, moving, from, until) {
  const { time, x, y } = tracks
  const [low, high] = verticesOf(tracks, moving)
  const points = [[from, ...positionOn(tracks, moving, from)]]
  for (let i = countUpTo(time, from, low, high); i < high && time[i] < until; i++) points.push([time[i], x[i], y[i]])
  points.push([until, ...positionOn(tracks, moving, until)])
  return points
}
