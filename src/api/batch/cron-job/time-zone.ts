/** Whether the name is a time zone of the IANA database, in the database's spelling. */
const PART = /^[A-Za-z._0-9+][A-Za-z._\-0-9+]{0,13}$/;

export function isTimeZone(name: string): boolean {
  const parts = name.split("/");
  if (parts.some((part) => part === "." || part === ".." || !PART.test(part))) return false;
  // Intl accepts offsets, but they are not time zones.
  if (/^[-+]/.test(name)) return false;
  const canonical = canonicalName(name);
  if (canonical === undefined) return false;
  // Go reads zones from files, whose names are case-sensitive. Intl resolves an alias to another name, which is
  // accepted.
  return canonical === name || canonical.toLowerCase() !== name.toLowerCase();
}

function canonicalName(name: string): string | undefined {
  try {
    return new Intl.DateTimeFormat("en", { timeZone: name }).resolvedOptions().timeZone;
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

const DIRECTORIES: ReadonlySet<string> = new Set(
  (
    "Africa America America/Argentina America/Indiana America/Kentucky America/North_Dakota Antarctica Arctic Asia " +
    "Atlantic Australia Brazil Canada Chile Etc Europe Indian Mexico Pacific US"
  ).split(" "),
);

/** Whether the name is that of a directory of time zones, which Go fails to read. */
export function isZoneDirectory(name: string): boolean {
  return DIRECTORIES.has(name);
}
