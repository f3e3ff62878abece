/** Habits of this code base that no compiler checks. */
import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { fileURLToPath } from "node:url";
import t from "tap";

const src = dirname(fileURLToPath(import.meta.url));
const LINE_WIDTH_MAX = 120;

interface Source {
  /** Relative to src, with slashes. */
  readonly path: string;
  readonly text: string;
  readonly imports: readonly Import[];
}

interface Import {
  /** A path relative to src, or the name of a package. */
  readonly target: string;
  readonly local: boolean;
  readonly typeOnly: boolean;
}

const sources: readonly Source[] = globSync("**/*.ts", { cwd: src })
  .sort()
  .map((path) => {
    const text = readFileSync(join(src, path), "utf8");
    return { path, text, imports: importsOf(path, text) };
  });

/** What each room may import besides itself: everything to its left. */
const order = [
  ["std"],
  ["flags", "http"],
  ["schema"],
  ["cel"],
  ["api"],
  ["client"],
  ["storage", "auth"],
  ["admission"],
  ["registry"],
  ["controllers"],
  ["apiserver", "agent"],
  ["up"],
  ["main.ts"],
  ["testing"],
  ["acceptance"],
  ["bench", "tidy.test.ts"],
];

/** Programs rather than modules: the tests in acceptance/cluster/ run them whole. */
const provedWhole = [
  /^main\.ts$/,
  /^(?:up|apiserver|agent)\/command\.ts$/,
  /^up\/(?:cluster|containerd\/runtime|commands\/(?:completion|token|write-reference))\.ts$/,
  /^(?:acceptance|testing|bench)\//,
  /\.(?:bench|fuzz)\.ts$/,
];

/** What only shows its worth in a room above, and the test there that shows it. */
const provedAbove: readonly (readonly [RegExp, string])[] = [
  [/^controllers\/(?:controllers|namespace\/)/, "acceptance/controllers/controllers.test.ts"],
  [/^(?:controllers\/certificates\/|auth\/certificate-signing\.ts)/, "acceptance/controllers/certificates.test.ts"],
  [/^agent\/api-server\/join\.ts$/, "up/node/node-bootstrap.test.ts"],
  [/^controllers\/garbage-collector\//, "acceptance/controllers/garbage-collector.test.ts"],
  [/^controllers\/resource-quota\//, "acceptance/controllers/resource-quota.test.ts"],
  [/^controllers\/service-account\//, "acceptance/controllers/service-account.test.ts"],
  [/^controllers\/bootstrap-token\//, "acceptance/controllers/bootstrap-token.test.ts"],
  [/^controllers\/ttl-after-finished\//, "acceptance/controllers/ttl-after-finished.test.ts"],
  [/^controllers\/node-lifecycle\//, "acceptance/controllers/node-lifecycle.test.ts"],
  [/^flags\/(?:completion|program|reference)\.ts$/, "up/commands/programs.test.ts"],
  [/^api\/core\/(?:resources\/quantities|pod-spec\/resources)\.ts$/, "admission/plugins/limit-ranger/limit-ranger.test.ts"],
  [/^auth\/review-client\.ts$/, "acceptance/flag-effects/apiserver/flag-effects.test.ts"],
  [/^(?:client\/webhook\/webhook-client|admission\/webhooks\/fixture)\.ts$/, "acceptance/server/webhooks.test.ts"],
];

t.test("imports point one way", (t) => {
  const rank = new Map(order.flatMap((rooms, place) => rooms.map((room) => [room, place] as const)));
  for (const { path, imports } of sources) {
    const from = roomOf(path);
    t.ok(rank.has(from), `${path} lies in a known room`);
    for (const { target } of imports.filter(({ local }) => local)) {
      const to = roomOf(target);
      if (from === to || (to === "testing" && isTest(path))) continue;
      t.ok(rank.get(to)! < rank.get(from)!, `${path} may import ${target}`);
    }
  }
  t.end();
});

t.test("imports make no circle", (t) => {
  const graph = new Map(
    sources.map(({ path, imports }) => [path, imports.filter((i) => i.local && !i.typeOnly).map((i) => i.target)]),
  );
  t.same(circles(graph), []);
  t.end();
});

t.test("libraries stay in their rooms", (t) => {
  const homes: Readonly<Record<string, RegExp>> = {
    yargs: /^flags\//,
    "yargs-parser": /^flags\//,
    zod: /^(?:flags\/|apiserver\/config\/options|agent\/options)/,
    pino: /^std\//,
    "classic-level": /^storage\/level\//,
    "@grpc/grpc-js": /^(?:storage\/kvstore|agent\/|auth\/service-account\/external-signer|testing\/)/,
    "@peculiar/x509": /^(?:auth|up|agent|testing)\//,
    "js-yaml": /^schema\//,
    re2js: /^(?:schema|cel)\//,
  };
  for (const { path, imports } of sources.filter(({ path }) => !path.endsWith(".test.ts"))) {
    for (const { target, local } of imports) {
      const home = local ? undefined : homes[target];
      if (home !== undefined) t.match(path, home, `${path} may import ${target}`);
    }
  }
  t.end();
});

t.test("no file passes on what is another's", (t) => {
  for (const { path, text } of sources) t.notMatch(text, /^export (?:\*|\{[^}]*\}) from /m, path);
  t.end();
});

t.test(`lines are at most ${LINE_WIDTH_MAX} wide`, (t) => {
  for (const { path, text } of sources) {
    const wide = text.split("\n").findIndex((line) => [...withoutText(line)].length > LINE_WIDTH_MAX);
    t.equal(wide, -1, `${path}:${wide + 1}`);
  }
  t.end();
});

t.test("time and chance come from std", (t) => {
  const direct =
    /(?<![.\w])(?:Date\.now|setTimeout|setInterval|performance\.now|Math\.random|process\.hrtime)\b|new Date\(\)/;
  const allowed = [
    // The only callers, by design.
    /^std\/(?:time\/clock|crypto\/random)\.ts$/,
    // They measure the real thing from outside.
    /^(?:acceptance|testing|bench)\//,
    /\.(?:test|bench|fuzz)\.ts$/,
  ];
  for (const { path, text } of sources) {
    if (allowed.some((pattern) => pattern.test(path))) continue;
    t.notMatch(code(text), direct, path);
  }
  t.end();
});

t.test("files of tests have directories of their own", (t) => {
  for (const { path, text } of sources) t.notMatch(text, /^(?:const|let) .*\bt\.testdir\(/m, path);
  t.end();
});

t.test("every subject is reached by a test of its room", (t) => {
  const byPath = new Map(sources.map((source) => [source.path, source]));
  const reached = new Set<string>();
  const follow = (path: string, room: string): void => {
    if (reached.has(path) || roomOf(path) !== room) return;
    reached.add(path);
    for (const { target, local, typeOnly } of byPath.get(path)?.imports ?? []) {
      if (local && !typeOnly) follow(target, room);
    }
  };
  for (const { path } of sources.filter(({ path }) => path.endsWith(".test.ts"))) follow(path, roomOf(path));
  for (const { path, text } of sources) {
    // Types and data alone have nothing to run.
    const runs = /\b(?:function|class)\b|^export const \w+.*=> /m.test(code(text));
    if (!runs || provedWhole.some((pattern) => pattern.test(path))) continue;
    const above = provedAbove.find(([pattern]) => pattern.test(path));
    if (above !== undefined) {
      t.ok(byPath.has(above[1]), `${path} is proved by ${above[1]}`);
      continue;
    }
    t.ok(reached.has(path), `${path} is imported by a test of its room, or by what that imports`);
  }
  t.end();
});

t.test("nothing admits that it is unfinished, or speaks of the machine it was written on", (t) => {
  const words = new RegExp(
    [`TO${"DO"}`, `FIX${"ME"}`, `XX${"X"}\\b`, `\\bst${"ub"}\\b`, `not implemented ${"yet"}`].join("|"),
  );
  const places = new RegExp(`["'\`(\\s](?:/${"work"}/|/${"home"}/|/${"root"}/)`);
  const unchecked = new RegExp(`@ts-${"ignore"}|@ts-${"expect-error"}|@ts-${"nocheck"}`);
  for (const { path, text } of sources) {
    t.notMatch(text, words, `${path}: unfinished`);
    t.notMatch(text, places, `${path}: a path of one machine`);
    t.notMatch(text, unchecked, `${path}: unchecked types`);
  }
  t.end();
});

t.test("links in the documents lead somewhere", (t) => {
  const root = dirname(src);
  for (const page of [...globSync("*.md", { cwd: root }), ...globSync("docs/*.md", { cwd: root })]) {
    const text = readFileSync(join(root, page), "utf8");
    for (const [, link = ""] of text.matchAll(/\]\((?!https?:|#)([^)#\s]+)/g)) {
      t.ok(existsSync(join(root, dirname(page), link)), `${page} links to ${link}`);
    }
  }
  t.end();
});

/** Tests, benchmarks and fuzz targets lie beside their subject, and are no part of the product. */
function isTest(path: string): boolean {
  return /\.(?:test|bench|fuzz)\.ts$/.test(path);
}

function roomOf(path: string): string {
  // What measures lies beside its subject, and is run from the benchmarks' room.
  return path.endsWith(".bench.ts") ? "bench" : path.split("/")[0]!;
}

function importsOf(path: string, text: string): readonly Import[] {
  const statement = /^(?:import|export) (type )?(?:[^"';]*? from )?"([^"]+)"|\bimport\("([^"]+)"\)/gm;
  return [...text.matchAll(statement)].map(([whole, type, from, dynamic]) => {
    const specifier = from ?? dynamic ?? "";
    const local = specifier.startsWith(".");
    const named = /\{([^}]*)\}/
      .exec(whole)?.[1]
      ?.split(",")
      .filter((name) => name.trim() !== "");
    const onlyTypes = named?.every((name) => name.trim().startsWith("type "));
    return {
      target: local ? posix.join(posix.dirname(path), specifier) : specifier,
      local,
      // What is imported when it is asked for makes no circle at the start.
      typeOnly: type !== undefined || onlyTypes || dynamic !== undefined,
    };
  });
}

/** A line of code without the text in it, which may be a message that is long. */
function withoutText(line: string): string {
  return /^\s*(?:\/?\*|\/\/)/.test(line) ? line : line.replaceAll(/(["'`]).*\1/g, "");
}

/** Without comments. */
function code(text: string): string {
  return text.replaceAll(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, "");
}

/** Each circle of a graph once, as the path that closes it. */
function circles(graph: ReadonlyMap<string, readonly string[]>): string[] {
  const found: string[] = [];
  const done = new Set<string>();
  const trail: string[] = [];
  const visit = (node: string): void => {
    const at = trail.indexOf(node);
    if (at >= 0) found.push([...trail.slice(at), node].join(" -> "));
    if (at >= 0 || done.has(node)) return;
    trail.push(node);
    for (const next of graph.get(node) ?? []) visit(next);
    trail.pop();
    done.add(node);
  };
  for (const node of graph.keys()) visit(node);
  return found;
}
