/** Other recordings must play without changes: texts of the recordings match texts of another machine and time. */
import t from "tap";
import { type Case, recordedAreas, recordedCases } from "./cases.ts";
import { followerOf, withCompanions } from "./companions.ts";
import { explainDifferences } from "./design-differences.ts";
import { needsNode, settingsOf, traitsOf } from "./settings.ts";
import { matchesText, unmatched, withoutSizes } from "./texts.ts";

const plain = { readsClock: false, readsNode: false };
const clock = { ...plain, readsClock: true };
const node = { ...plain, readsNode: true };

for (const [recorded, played, traits] of [
  ["1795231741", "1795297000", plain],
  ["at 1795231741.25 s", "at 1795297000.5 s", plain],
  ["03:27:01", "17:00:59", plain],
  ["Sat Nov 21 03:27:01 UTC 2026", "Sun Nov 22 17:01:02 UTC 2026", plain],
  ["2026-11-21T03:27:01Z start", "2026-11-22T09:01:02.123Z start", plain],
  ['kubernetes.io/config.seen="<t+1s>"', 'kubernetes.io/config.seen="2026-11-22T09:01:02.123Z"', plain],
  ["took 5", "took 6", clock],
  ["took 60", "took 52", clock],
  ["<pod-ip> web", "10.88.0.7 web", plain],
  ["inet6 <link-local>/64", "inet6 fe80::42:aff:fe58:7/64", plain],
  ["ether <mac>", "ether 0a:58:0a:58:00:07", plain],
  ["<kubelet-root>/pods/<uid>/volumes", "/tmp/x/pods/0c3d4e5f-aaaa-bbbb-cccc-0123456789ab/volumes", plain],
  ["..<stamp>/a", "..2026_11_22_09_01_02.1234567890/a", plain],
  ["requested: 1000, used: 700, capacity: 2000", "requested: 1000, used: 0, capacity: 8000", plain],
  ["Container c was using 5124Ki, request is 0", "Container c was using 6000Ki, request is 0", plain],
  [
    'Successfully pulled image "x" in <ms>ms (<ms>ms including waiting). Image size: 100 bytes.',
    'Successfully pulled image "x" in 812ms (812ms including waiting). Image size: 100 bytes.',
    plain,
  ],
  [
    'Successfully pulled image "x" in 1.2s (1.3s including waiting). Image size: 100 bytes.',
    'Successfully pulled image "x" in 812ms (812ms including waiting). Image size: 900 bytes.',
    plain,
  ],
  ["MEMORY=50552430592", "MEMORY=8589934592", node],
] as const) {
  t.test(`matchesText() accepts "${played}" for "${recorded}"`, async (t) =>
    t.ok(matchesText(recorded, played, traits)),
  );
}

for (const [recorded, played, traits] of [
  ["exit 3", "exit 4", plain],
  ["took 5", "took 6", plain],
  ["took 5", "took 9", clock],
  ["<pod-ip> web", "web web", plain],
  ["size=65536k", "size=65537k", node],
  ["memory.limit_in_bytes 67108864", "memory.limit_in_bytes 9223372036854771712", node],
  ["a.b", "axb", plain],
] as const) {
  t.test(`matchesText() rejects "${played}" for "${recorded}"`, async (t) =>
    t.notOk(matchesText(recorded, played, traits)),
  );
}

t.test("withoutSizes() removes sizes that depend on names, addresses and file systems only", async (t) => {
  const hosts = "-rw-r--r--    1 0        0              213 Nov 21 03:32 /etc/hosts";
  t.equal(withoutSizes(hosts), "-rw-r--r-- 1 0 0 <size> Nov 21 03:32 /etc/hosts");
  t.equal(withoutSizes("drwxr-sr-x 0:2000 60 ./dir"), "drwxr-sr-x 0:2000 <size> ./dir");
  t.equal(withoutSizes("-r--r----- 0:2000 12 ./k"), "-r--r----- 0:2000 12 ./k");
  t.equal(withoutSizes("total 12"), "total <size>");
});

/** Values of another machine for the recorder's placeholders. */
function moved(text: string): string {
  const values: readonly (readonly [RegExp, string])[] = [
    [/<t[+-]?\d+s>/g, "2027-01-02T03:04:05Z"],
    [/<(pod-ip|node-ip|gateway-ip|nameserver)>/g, "192.0.2.77"],
    [/<stamp>/g, "2027_01_02_03_04_05.987654321"],
    [/<(port|n|ms)>/g, "4711"],
    [/<(dir|kubelet-root|runtime-root|install)>/g, "/srv/some-place"],
    [/<id-\d+>/g, "ab".repeat(32)],
    [/<hash-\d+>/g, "cd".repeat(16)],
    [/<u?uid>/g, "01234567-89ab-cdef-0123-456789abcdef"],
    [/<digest>/g, "ef".repeat(32)],
    [/\b1[67]\d{8}\b/g, "1800000000"],
    [/(?<![\d.:])[01]\d:[0-5]\d\b(?!:)/g, "23:59"],
    [/<[a-z][a-z-]*>/g, "some-name"],
  ];
  return values.reduce((all, [pattern, value]) => all.replace(pattern, value), text);
}

function textsOf({ events, logs }: Case): readonly string[] {
  const lines = Object.values(logs).flatMap((runs) => runs.flatMap((run) => run.lines.map(([, , text]) => text)));
  return [...new Set([...events.map(({ message }) => message), ...lines])];
}

t.test("unmatched() finds no difference when a recording is moved to another machine", async (t) => {
  for (const area of recordedAreas()) {
    for (const one of recordedCases(area)) {
      const texts = textsOf(one);
      t.strictSame(unmatched(texts, texts.map(moved), traitsOf(one)), { missing: [], excess: [] }, one.id);
    }
  }
});

t.test("companions and settings follow from the recordings, whatever the names of the cases", async (t) => {
  const cases = recordedAreas().flatMap(recordedCases);
  if (cases.length === 0) return t.comment("Skipped: shared/ is not present");
  const rename = ({ id, ...rest }: Case): Case => ({ id: id.replace(/^(cfg-[a-z]-)?(.*)$/, "$1x-$2-y"), ...rest });
  const followers = (all: readonly Case[]) =>
    all.flatMap((one) => {
      const next = followerOf(one, all);
      return next === undefined ? [] : [[one.pod?.metadata.name, next.pod?.metadata.name]];
    });
  t.same(followers(cases).length, 3);
  t.same(followers(cases.map(rename)), followers(cases));
  t.same(cases.map(rename).map(settingsOf), cases.map(settingsOf));
  t.equal(withCompanions([cases.find((one) => followerOf(one, cases))?.id ?? ""], cases).length, 2);
  t.ok(cases.some(needsNode));
  t.ok(cases.some((one) => !needsNode(one)));
});

t.test("explainDifferences() explains only what the design changes, whatever the names", async (t) => {
  const event = (reason: string) => ({ type: "Warning", reason, message: "m", count: 1 });
  const ended = {
    id: "any",
    area: "a",
    about: "",
    until: {},
    logs: {},
    snapshots: [{ status: { phase: "Succeeded" } }],
  };
  const evicted: Case = { ...ended, events: [event("Evicted")] };
  const lines = ["phases: Pending, Running, Succeeded", "  not Pending, Running, Failed", "reason: ; not Evicted"];
  t.same(explainDifferences(evicted, lines).differences, []);
  t.match(explainDifferences(evicted, lines).why, /an evicted or preempted pod fails/);
  t.same(explainDifferences(evicted, [...lines, "log of c #0 missing: o x"]).differences.length, 4);
  t.same(explainDifferences({ ...ended, events: [] }, lines).differences, lines);
  t.same(explainDifferences(evicted, []), { why: "", differences: [] });
});
