/** A checked-in list of differences from recordings: names by reason. None may be added; those that agree go. */
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

type Listed = Readonly<Record<string, readonly string[]>>;

export class RecordedDifferences {
  readonly #file: string;
  readonly #listed: Listed;
  readonly #found = new Map<string, string>();

  /** `name`: of the file in `testdata/recorded-differences`, without its extension. */
  constructor(name: string) {
    this.#file = fileURLToPath(new URL(`../../../testdata/recorded-differences/${name}.json`, import.meta.url));
    this.#listed = JSON.parse(readFileSync(this.#file, "utf8")) as Listed;
  }

  /** Undefined: it agrees with the recording. */
  add(name: string, difference: string | undefined): void {
    if (difference !== undefined) this.#found.set(name, difference);
  }

  get count(): number {
    return this.#found.size;
  }

  /** Differences that are not in the list. */
  unlisted(): readonly string[] {
    const listed = new Set(Object.values(this.#listed).flat());
    return [...this.#found].filter(([name]) => !listed.has(name)).map(([name, text]) => `${name}: ${text}`);
  }

  /** Listed names that do not differ; with SVC_RECORD=1 none, because they are removed from the file. */
  resolved(): readonly string[] {
    const resolved = Object.values(this.#listed)
      .flat()
      .filter((name) => !this.#found.has(name));
    if (process.env.SVC_RECORD !== "1" || resolved.length === 0) return resolved;
    const kept = Object.entries(this.#listed)
      .map(([reason, names]) => [reason, names.filter((name) => this.#found.has(name))] as const)
      .filter(([, names]) => names.length > 0);
    writeFileSync(this.#file, `${JSON.stringify(Object.fromEntries(kept), undefined, 1)}\n`);
    return [];
  }
}
