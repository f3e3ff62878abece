import t from "tap";
import type { Deployment } from "../../api/apps/deployment/schema.ts";
import type { ReplicaSet } from "../../api/apps/replica-set/schema.ts";
import { annotatedNumber, MAX_REPLICAS } from "./deployment-numbers.ts";
import { nextRevision, REVISION, revisionAnnotations, revisionOf } from "./revisions.ts";
import { rollbackRevision } from "./rollback.ts";

const HISTORY = "deployment.kubernetes.io/revision-history";
const ROLLBACK_TO = "deprecated.deployment.rollback.to";

function set(annotations: Readonly<Record<string, string>>): ReplicaSet {
  return { metadata: { name: "web", annotations } };
}

t.test("a revision is a 64-bit integer, and an annotation that is none counts as 0", async (t) => {
  const rows: readonly (readonly [text: string | undefined, revision: bigint, next: bigint])[] = [
    [undefined, 0n, 1n],
    ["", 0n, 1n],
    ["3", 3n, 4n],
    ["+3", 3n, 4n],
    ["-3", -3n, 1n],
    ["9007199254740992", 9007199254740992n, 9007199254740993n],
    ["3546343826724305832", 3546343826724305832n, 3546343826724305833n],
    ["9223372036854775807", 9223372036854775807n, -9223372036854775808n],
    ["9223372036854775808", 0n, 1n],
    ["1.5", 0n, 1n],
    ["new", 0n, 1n],
  ];
  for (const [text, revision, next] of rows) {
    const annotated = set(text === undefined ? {} : { [REVISION]: text });
    t.equal(revisionOf(annotated), revision, `${text}`);
    t.equal(nextRevision([annotated]), next, `after ${text}`);
  }
  t.equal(nextRevision([]), 1n);
  t.equal(nextRevision([set({ [REVISION]: "2" }), set({ [REVISION]: "9007199254740993" })]), 9007199254740994n);
});

t.test("a replica set gets a larger revision, with the previous one in its history, and keeps others", async (t) => {
  const deployment: Deployment = { metadata: { name: "web" } };
  const rows: readonly (readonly [before: Record<string, string>, revision: bigint, after: Record<string, string>])[] =
    [
      [{}, 1n, { [REVISION]: "1" }],
      [{ [REVISION]: "" }, 2n, { [REVISION]: "2", [HISTORY]: "" }],
      [{ [REVISION]: "1" }, 3n, { [REVISION]: "3", [HISTORY]: "1" }],
      [
        { [REVISION]: "9007199254740992" },
        9007199254740993n,
        { [REVISION]: "9007199254740993", [HISTORY]: "9007199254740992" },
      ],
      [{ [REVISION]: "2", [HISTORY]: "1" }, 3n, { [REVISION]: "3", [HISTORY]: "1,2" }],
      [{ [REVISION]: "9007199254740993" }, 9007199254740992n, { [REVISION]: "9007199254740993" }],
      [{ [REVISION]: "new" }, 3n, { [REVISION]: "new" }],
      [{ [REVISION]: "9223372036854775808" }, 3n, { [REVISION]: "9223372036854775808" }],
    ];
  for (const [before, revision, after] of rows) {
    t.same(revisionAnnotations(deployment, before, revision), after, `${JSON.stringify(before)} to ${revision}`);
  }
});

t.test("a rollback is requested by a 64-bit integer, and others are no request", async (t) => {
  const rows: readonly (readonly [text: string, revision: bigint | undefined])[] = [
    ["0", 0n],
    ["+2", 2n],
    ["9007199254740993", 9007199254740993n],
    ["9223372036854775808", undefined],
    ["last", undefined],
    ["", undefined],
  ];
  for (const [text, revision] of rows) {
    t.equal(rollbackRevision({ metadata: { annotations: { [ROLLBACK_TO]: text } } }), revision, text);
  }
});

t.test("annotated sizes are integers from 0 to 2^31-1 without a sign", async (t) => {
  const rows: readonly (readonly [text: string, size: number | undefined])[] = [
    ["0", 0],
    ["007", 7],
    ["2147483647", 2147483647],
    ["2147483648", undefined],
    ["-1", undefined],
    ["+1", undefined],
    ["many", undefined],
  ];
  for (const [text, size] of rows) t.equal(annotatedNumber(set({ [MAX_REPLICAS]: text }), MAX_REPLICAS), size, text);
});
