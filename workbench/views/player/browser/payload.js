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
