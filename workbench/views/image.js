// Replace the image in front of this script by the SVG element that it shows: the element has tooltips and follows the
// light or dark theme of the page. Other images are left alone, because the SVG of an unknown image may contain scripts.
{
  const image = document.currentScript?.previousElementSibling
  if (image instanceof HTMLImageElement && image.src.startsWith("data:image/svg+xml;base64,")) {
    const bytes = Uint8Array.from(atob(image.src.split(",")[1]), (character) => character.charCodeAt(0))
    const parsed = document.createElement("template")
    parsed.innerHTML = new TextDecoder().decode(bytes)
    image.replaceWith(parsed.content)
  }
}
