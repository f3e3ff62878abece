const SHOWN = 3;

/** Formats a list for a table cell: `a,b,c + 2 more...`. */
export function formatList(items: readonly string[]): string {
  const shown = items.slice(0, SHOWN).join(",");
  return items.length > SHOWN ? `${shown} + ${items.length - SHOWN} more...` : shown;
}
