const SHOWN = 3;

/** `a,b,c + 2 more...`, as tables show lists that may be long. */
export function formatList(items: readonly string[]): string {
  const shown = items.slice(0, SHOWN).join(",");
  return items.length > SHOWN ? `${shown} + ${items.length - SHOWN} more...` : shown;
}
