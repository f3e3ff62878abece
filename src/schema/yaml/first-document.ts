/** The first document of a YAML text: Go's parser does not read further, whatever follows. */

const MARKER = /^(?:---|\.\.\.)(?=\s|$)/gm;
const BEFORE_CONTENT = /^(?:[ \t]*(?:#.*)?(?:\r?\n|$)|%.*(?:\r?\n|$))*/;

/** The text up to the marker that ends its first document. */
export function firstDocument(text: string): string {
  const { length } = BEFORE_CONTENT.exec(text.startsWith("\uFEFF") ? text.slice(1) : text)?.[0] ?? "";
  MARKER.lastIndex = text.startsWith("\uFEFF") ? length + 1 : length;
  const start = MARKER.lastIndex;
  const marker = MARKER.exec(text);
  // The marker that begins the document.
  const end = marker?.index === start && marker[0] === "---" ? MARKER.exec(text) : marker;
  return end === null ? text : text.slice(0, end.index);
}
