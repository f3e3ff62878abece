/** Names what the keys between two keys of LevelDB are for, as far as the two show it. */
import { keyOf, keyOfHead, LETTER, revisionOf } from "../keys.ts";

interface Section {
  readonly letter: number;
  readonly name: string;
  readonly first: string;
  readonly last: string;
  readonly describe: (bytes: Buffer) => string;
}

const REVISION_BYTES = 8;

/** In the order of their letters. Other keys are times to live and numbers of the store. */
const SECTIONS: readonly Section[] = [
  {
    letter: LETTER.head,
    name: "current revisions of keys",
    first: "the first",
    last: "the last",
    describe: (bytes) => JSON.stringify(keyOfHead(bytes)),
  },
  {
    letter: LETTER.log,
    name: "the log of revisions",
    first: "the oldest",
    last: "the latest",
    describe: (bytes) => (bytes.length > REVISION_BYTES ? String(revisionOf(bytes)) : "unknown"),
  },
  {
    letter: LETTER.version,
    name: "values of keys",
    first: "the first",
    last: "the last",
    describe: (bytes) => JSON.stringify(keyOf(bytes)),
  },
];

/** `values of keys "/registry/a" to "/registry/z"` for two keys of versions. Both keys belong to the range. */
export function describeKeyRange(smallest: Buffer, largest: Buffer): string {
  const [from, to] = [smallest[0] ?? 0, largest[0] ?? 0];
  const parts = SECTIONS.filter(({ letter }) => letter >= from && letter <= to).map((section) => {
    const first = section.letter === from ? section.describe(smallest) : section.first;
    const last = section.letter === to ? section.describe(largest) : section.last;
    return `${section.name} ${first === last ? first : `${first} to ${last}`}`;
  });
  return parts.length === 0 ? "times to live and numbers of the store" : parts.join(", ");
}
