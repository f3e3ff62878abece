/**
 * Compares texts of a recording with those of a replay. What depends on the machine or on the time differs: clock
 * texts, addresses, ids, paths of the agent, sizes of files that contain them. The recording shows where it does: it
 * has placeholders, or texts of these forms.
 */

/** Traits of the pod that recorded the texts; they widen the comparison. */
export interface TextTraits {
  /** Its commands print times. */
  readonly readsClock: boolean;
  /** Its commands print resources of the node. */
  readonly readsNode: boolean;
}

const ADDRESS = String.raw`(?:\d{1,3}(?:\.\d{1,3}){3}|[0-9a-f]*:[0-9a-f:]+)`;
const PATH = String.raw`/[^\s"':,]*`;
const TIME = String.raw`(?:\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?: ?Z| ?[+-]\d\d:?\d\d)?|1970-\S+|\d{10}(?:\.\d+)?)`;
const EPOCH = String.raw`1[6-9]\d{8}(?:\d{3}){0,3}(?:\.\d+)?`;
const CLOCK = String.raw`(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d+)?)?`;
const DATE = String.raw`(?:[A-Z][a-z]{2} )?[A-Z][a-z]{2} [ \d]\d (?:${CLOCK}(?: [A-Z]{3,4})?(?: \d{4})?| ?\d{4})`;
const DURATION = String.raw`(?:\d+h)?(?:\d+m)?\d+(?:\.\d+)?(?:ms|µs|ns|s)`;

/** Placeholders of the recorder, by what they stand for. */
const placeholders: readonly (readonly [pattern: RegExp, matches: string])[] = [
  [/^<t[+-]?\d+ ?s>$/, TIME],
  [/^<(pod-ip|node-ip|gateway-ip|nameserver)>$/, ADDRESS],
  [/^<link-local>$/, "fe80:[0-9a-f:]+"],
  [/^<mac>$/, "[0-9a-f]{2}(?::[0-9a-f]{2}){5}"],
  [/^<stamp>$/, String.raw`\d{4}_\d\d_\d\d_\d\d_\d\d_\d\d\.\d+`],
  [/^<(port|n|ms)>$/, String.raw`\d+(?:\.\d+)?`],
  [/^<epoch>$/, String.raw`(?:1970-01-01\S*|\d{10})`],
  [/^<(dir|kubelet-root|runtime-root|install)>$/, PATH],
  [/^<id-\d+>$/, "[0-9a-f]{12,64}"],
  [/^<hash-\d+>$/, "[0-9a-f]{8,64}"],
  [/^<u?uid>$/, "[0-9a-f]{8}-[0-9a-f-]{27}|[0-9a-f]{32}"],
  [/^<digest>$/, "[0-9a-f]{64}"],
  [/^<[a-z][a-z-]*>$/, String.raw`[^\s"]+`],
];

/** Texts that depend on the machine or the time although the recorder left them. */
const volatile: readonly (readonly [pattern: RegExp, matches: string])[] = [
  [new RegExp(`^${TIME}$`), TIME],
  [new RegExp(`^${EPOCH}$`), EPOCH],
  [new RegExp(`^${DATE}$`), DATE],
  [new RegExp(`^${CLOCK}$`), CLOCK],
  [/^(?:requested|used|capacity|available): \d+(?:Ki|Mi)?$/, String.raw`[a-z]+: \d+(?:Ki|Mi)?`],
  [/^was using \d+Ki$/, String.raw`was using \d+Ki`],
  [
    /^in \S+ \(\S+ including waiting\)\. Image size: \d+$/,
    String.raw`in \S+ \(\S+ including waiting\)\. Image size: \d+`,
  ],
  [new RegExp(`^after ${DURATION}$`), `after ${DURATION}`],
];

const token = new RegExp(
  [
    "<[^<>\\s]{1,24}(?: s)?>",
    String.raw`(?:requested|used|capacity|available): \d+(?:Ki|Mi)?`,
    String.raw`was using \d+Ki`,
    String.raw`in \S+ \(\S+ including waiting\)\. Image size: \d+`,
    String.raw`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?: ?Z| ?[+-]\d\d:?\d\d)?`,
    DATE,
    String.raw`(?<![\d.:])${CLOCK}(?![\d:])`,
    String.raw`\b${EPOCH}\b`,
    `after ${DURATION}`,
    String.raw`\d+`,
  ].join("|"),
  "g",
);

/** Numbers may differ by this much where a command prints times. */
const CLOCK_TOLERANCE = 2;
/** Resources of a node, and of no container of the recordings. */
const NODE_BYTES_MIN = 2n ** 30n;
const NO_LIMIT = 2n ** 62n;

export function matchesText(recorded: string, played: string, traits: TextTraits): boolean {
  if (recorded === played) return true;
  const numbers: bigint[] = [];
  let pattern = "";
  let end = 0;
  for (const found of recorded.matchAll(token)) {
    const text = found[0];
    pattern += escapeText(recorded.slice(end, found.index));
    end = found.index + text.length;
    if (/^\d+$/.test(text) && !volatile.some(([form]) => form.test(text))) {
      pattern += String.raw`(\d+)`;
      numbers.push(BigInt(text));
    } else pattern += `(?:${tokenPattern(text)})`;
  }
  const matched = new RegExp(`^${pattern}${escapeText(recorded.slice(end))}$`, "s").exec(played);
  return (
    matched !== null && numbers.every((number, index) => matchesNumber(number, BigInt(matched[index + 1]!), traits))
  );
}

function tokenPattern(text: string): string {
  const found = [...placeholders, ...volatile].find(([form]) => form.test(text));
  // The replay has the same placeholders for its own values.
  return found === undefined ? escapeText(text) : `${escapeText(text)}|${found[1]}`;
}

function matchesNumber(recorded: bigint, played: bigint, { readsClock, readsNode }: TextTraits): boolean {
  if (recorded === played) return true;
  const difference = recorded > played ? recorded - played : played - recorded;
  if (readsClock && (difference <= CLOCK_TOLERANCE || difference * 4n <= recorded)) return true;
  const isOfNode = (value: bigint): boolean => value >= NODE_BYTES_MIN && value < NO_LIMIT;
  return readsNode && isOfNode(recorded) && isOfNode(played);
}

function escapeText(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&");
}

/** Files whose contents, and so their sizes, depend on names and addresses. */
const sizedByMachine =
  /(?:\/etc\/(?:hosts|hostname|resolv\.conf)|(?:^|[ /])(?:hosts|hostname|resolv\.conf|token|ca\.crt|namespace))$/;

/** Without sizes in lists of files that depend on the machine: of directories, and of files that contain names. */
export function withoutSizes(line: string): string {
  if (/^total \d+$/.test(line)) return "total <size>";
  const [, mode = "", middle = "", size = "", rest = ""] =
    /^([-dlbcps][-rwxsStT]{9})((?: +\S+){1,3} +)(\d+)( .+)$/.exec(line) ?? [];
  if (size === "" || !(mode.startsWith("d") || sizedByMachine.test(rest))) return line;
  return `${mode}${middle.replace(/ +/g, " ")}<size>${rest}`;
}

/** Lines and events that one side lacks: each text of a side needs a match on the other. */
export function unmatched(
  wanted: readonly string[],
  got: readonly string[],
  traits: TextTraits,
): { readonly missing: readonly string[]; readonly excess: readonly string[] } {
  const all = new Set(got);
  const missing = wanted.filter((each) => !all.has(each) && !got.some((other) => matchesText(each, other, traits)));
  const known = new Set(wanted);
  const excess = got.filter((other) => !known.has(other) && !wanted.some((each) => matchesText(each, other, traits)));
  return { missing, excess };
}
