// The theme's search button shows "Search Ctrl + K", but its label is "Search". A label must contain what the button shows.
for (const button of document.querySelectorAll(".search-button-field")) {
  button.setAttribute("aria-label", button.textContent.replace(/\s+/g, " ").trim())
}
