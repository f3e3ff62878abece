/** Rules of this code base that no compiler checks. docs/development.md lists them. */
import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { fileURLToPath } from "node:url";
import t from "tap";

const src = dirname(fileURLToPath(import.meta.url));
const LINE_WIDTH_MAX = 120;
const FOLDER_FILES_MAX = 26;
const ACCEPTANCE_LINES_MAX = 500;

/** Words that personify programs, or name a thing otherwise than Kubernetes, Node.js and the RFCs do. */
const bannedWords = new RegExp(
  `\\b(?:${[
    "whoever",
    "whomever",
    "nobody",
    "somebody",
    "anybody",
    "everybody",
    "tells?",
    "told",
    "hears?",
    "heard",
    "asks?",
    "asked",
    "asking",
    "believes?",
    "believed",
    "judges?",
    "judged",
    "judging",
    "mends?",
    "mended",
    "mending",
    "reckons?",
    "reckoned",
    "rouses?",
    "roused",
    "desk",
    "keeper",
    "laps",
    "booked",
    "patience",
    "strangers?",
    "last words",
    "packet filter",
    "identity tokens?",
    "has a say",
    "keeps? books?",
    "front door",
    "mishaps?",
  ].join("|")})\\b`,
  "i",
);

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
  /** `import()`: resolved when it is called, so it closes no cycle at the start. */
  readonly dynamic: boolean;
}

const sources: readonly Source[] = globSync("**/*.ts", { cwd: src })
  .sort()
  .map((path) => {
    const text = readFileSync(join(src, path), "utf8");
    return { path, text, imports: importsOf(path, text) };
  });

/** What each package may import besides itself: everything in the rows above it. */
const order = [
  ["std"],
  ["tracing"],
  ["flags", "http"],
  ["schema"],
  ["cel"],
  ["api"],
  ["client"],
  ["storage", "auth", "profiling"],
  ["admission", "audit"],
  ["registry"],
  ["component"],
  ["scheduler"],
  ["controllers", "dns", "network-policy", "pod-network", "proxy"],
  ["apiserver", "agent", "controller-manager"],
  ["up"],
  ["main.ts"],
  ["testing"],
  ["acceptance"],
  ["bench", "tidy.test.ts"],
];

/** Programs rather than modules: the tests in acceptance/cluster/ run them. */
const testedAsProgram = [
  /^main\.ts$/,
  /^(?:up|apiserver|agent|controller-manager|scheduler)\/command\.ts$/,
  /^up\/(?:cluster|containerd\/runtime|commands\/(?:completion|token|write-reference))\.ts$/,
  /^(?:acceptance|testing|bench)\//,
  /\.(?:bench|fuzz)\.ts$/,
];

/** Files whose tests lie in a higher package, and that test. */
const testedElsewhere: readonly (readonly [RegExp, string])[] = [
  [/^controllers\/(?:controller-manager|namespace\/)/, "acceptance/controllers/controllers.test.ts"],
  [
    /^(?:controllers\/(?:certificates\/|signing-authorities\.ts)|auth\/pki\/certificate-signing\.ts)/,
    "acceptance/controllers/certificates.test.ts",
  ],
  [/^agent\/api-server\/join\.ts$/, "up/node/node-bootstrap.test.ts"],
  [
    /^controllers\/(?:deployment|replica-set|volumes|workload)\//,
    "acceptance/controllers/recorded/recorded-controllers.test.ts",
  ],
  [/^scheduler\/(?:options|run)\.ts$/, "acceptance/scheduler/scheduler-process.test.ts"],
  [/^controllers\/garbage-collector\//, "acceptance/controllers/garbage-collector.test.ts"],
  [/^controllers\/resource-quota\//, "acceptance/controllers/resource-quota.test.ts"],
  [/^controllers\/service-account\//, "acceptance/controllers/service-account.test.ts"],
  [/^controllers\/bootstrap\//, "acceptance/controllers/bootstrap-token.test.ts"],
  [/^controllers\/ttl-after-finished\//, "acceptance/controllers/ttl-after-finished.test.ts"],
  [/^http\/health\.ts$/, "apiserver/health/health.test.ts"],
  [/^client\/transport\/rate-limited-transport\.ts$/, "agent/api-server/connection.test.ts"],
  [/^(?:component|controller-manager)\//, "acceptance/controllers/controller-manager.test.ts"],
  [/^apiserver\/control-plane\/local-path-storage\.ts$/, "acceptance/cluster/volumes.test.ts"],
  [/^controllers\/node-lifecycle\//, "acceptance/controllers/node-lifecycle.test.ts"],
  [/^flags\/(?:completion|program|reference)\.ts$/, "up/commands/programs.test.ts"],
  [
    /^api\/core\/(?:resources\/quantities|pod-spec\/resources)\.ts$/,
    "admission/plugins/limit-ranger/limit-ranger.test.ts",
  ],
  [/^auth\/webhook\/review-client\.ts$/, "acceptance/flag-effects/apiserver/flag-effects.test.ts"],
  [/^client\/webhook\/[\w-]+\.ts$/, "acceptance/server/webhooks.test.ts"],
];

t.test("imports point one way", (t) => {
  const rank = new Map(order.flatMap((packages, index) => packages.map((name) => [name, index] as const)));
  for (const { path, imports } of sources) {
    const from = packageOf(path);
    t.ok(rank.has(from), `${path} lies in a known package`);
    for (const { target } of imports.filter(({ local }) => local)) {
      const to = packageOf(target);
      if (from === to || (to === "testing" && isTest(path))) continue;
      t.ok(rank.get(to)! < rank.get(from)!, `${path} may import ${target}`);
    }
  }
  t.end();
});

t.test("imports form no cycle, those of types included", (t) => {
  const graph = new Map(
    sources.map(({ path, imports }) => [path, imports.filter((i) => i.local && !i.dynamic).map((i) => i.target)]),
  );
  t.same(cycles(graph), []);
  t.end();
});

t.test("libraries are imported only by the packages that wrap them", (t) => {
  const homes: Readonly<Record<string, RegExp>> = {
    yargs: /^flags\//,
    "yargs-parser": /^flags\//,
    undici: /^client\//,
    "dns-packet": /^dns\/(?:wire\/|dns\.fuzz)/,
    "zod/mini": /^(?:client\/kubeconfig|auth\/authn\/jwt|agent\/(?:api-server|images|volumes\/flex))\//,
    pino: /^std\//,
    "@noble/ciphers/salsa.js": /^storage\/encryption\//,
    level: /^storage\/level\//,
    "@grpc/grpc-js":
      /^(?:storage\/kvstore3|client\/grpc|apiserver\/egress|agent\/|tracing\/otlp|auth\/service-account|testing\/)/,
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

t.test("no file re-exports from another", (t) => {
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

t.test("time and randomness come from std", (t) => {
  const direct =
    /(?<![.\w])(?:Date\.now|setTimeout|setInterval|performance\.now|Math\.random|process\.hrtime)\b|new Date\(\)/;
  const allowed = [
    // The watchdog compares its beats with the real time of its thread; the timer of compiled code keeps no process.
    /^std\/(?:time\/clock|crypto\/random|process\/watchdog|process\/compiled-code)\.ts$/,
    /^(?:acceptance|testing|bench)\//,
    /\.(?:test|bench|fuzz)\.ts$/,
  ];
  for (const { path, text } of sources) {
    if (allowed.some((pattern) => pattern.test(path))) continue;
    t.notMatch(code(text), direct, path);
  }
  t.end();
});

t.test("test files share no test directory", (t) => {
  for (const { path, text } of sources) t.notMatch(text, /^(?:const|let) .*\bt\.testdir\(/m, path);
  t.end();
});

t.test("every file with code is imported by a test of its package, directly or not", (t) => {
  const byPath = new Map(sources.map((source) => [source.path, source]));
  const reached = new Set<string>();
  const follow = (path: string, name: string): void => {
    if (reached.has(path) || packageOf(path) !== name) return;
    reached.add(path);
    for (const { target, local, typeOnly, dynamic } of byPath.get(path)?.imports ?? []) {
      if (local && (dynamic || !typeOnly)) follow(target, name);
    }
  };
  for (const { path } of sources.filter(({ path }) => path.endsWith(".test.ts"))) follow(path, packageOf(path));
  for (const { path, text } of sources) {
    // Types and data have nothing to run.
    const runs = /\b(?:function|class)\b|^export const \w+.*=> /m.test(code(text).replaceAll(/ from ".*"/g, ""));
    if (!runs || testedAsProgram.some((pattern) => pattern.test(path))) continue;
    const above = testedElsewhere.find(([pattern]) => pattern.test(path));
    if (above !== undefined) {
      t.ok(byPath.has(above[1]), `${path} is tested by ${above[1]}`);
      continue;
    }
    t.ok(reached.has(path), `${path} is imported by a test of its package, or by what that test imports`);
  }
  t.end();
});

t.test("no file has marks of unfinished work, paths of one machine or unchecked types", (t) => {
  const words = new RegExp(
    [`TO${"DO"}`, `FIX${"ME"}`, `XX${"X"}\\b`, `\\bst${"ub"}\\b`, `not implemented ${"yet"}`].join("|"),
  );
  const paths = new RegExp(`["'\`(\\s](?:/${"work"}/|/${"home"}/|/${"root"}/)`);
  const unchecked = new RegExp(`@ts-${"ignore"}|@ts-${"expect-error"}|@ts-${"nocheck"}`);
  for (const { path, text } of sources) {
    t.notMatch(text, words, `${path}: unfinished`);
    t.notMatch(text, paths, `${path}: a path of one machine`);
    t.notMatch(text, unchecked, `${path}: unchecked types`);
  }
  t.end();
});

t.test("no cast through unknown outside of tests", (t) => {
  const cast = new RegExp(`\\bas unknown ${"as"}\\b`);
  for (const { path, text } of sources.filter(({ path }) => isProduct(path))) t.notMatch(code(text), cast, path);
  t.end();
});

t.test("product folders hold no support files of tests", (t) => {
  for (const { path } of sources.filter(({ path }) => isProduct(path))) {
    t.notMatch(posix.basename(path), /^fake-|(?:^|-)(?:fixture|harness|suite)\.ts$/, path);
  }
  t.end();
});

t.test(`product folders hold at most ${FOLDER_FILES_MAX} files`, (t) => {
  const folders = Map.groupBy(
    sources.filter(({ path }) => !/^(?:acceptance|testing|bench)\//.test(path)),
    ({ path }) => posix.dirname(path),
  );
  for (const [folder, files] of folders) t.ok(files.length <= FOLDER_FILES_MAX, `${folder}: ${files.length} files`);
  t.end();
});

t.test(`files of src/acceptance have at most ${ACCEPTANCE_LINES_MAX} lines`, (t) => {
  for (const { path, text } of sources.filter(({ path }) => path.startsWith("acceptance/"))) {
    t.ok(text.split("\n").length - 1 <= ACCEPTANCE_LINES_MAX, path);
  }
  t.end();
});

t.test("names, comments and pages use the vocabulary of Kubernetes, Node.js and the RFCs", (t) => {
  const root = dirname(src);
  const scripts = ["README.md", "Makefile", "build.mjs", "bin/*", "docs/*.md"];
  const others = globSync(scripts, { cwd: root }).map((path) => ({
    path,
    text: readFileSync(join(root, path), "utf8"),
  }));
  for (const { path, text } of [...sources.filter(({ path }) => path !== "tidy.test.ts"), ...others]) {
    const found = text.split("\n").flatMap((line, index) => {
      // Kubernetes' own texts stand in quotes.
      const word = bannedWords.exec(path.endsWith(".ts") ? withoutQuotes(line) : line)?.[0];
      return word === undefined ? [] : [`${path}:${index + 1}: ${word}`];
    });
    t.same(found, [], path);
  }
  t.end();
});

t.test("links in the documents lead to files", (t) => {
  const root = dirname(src);
  for (const page of [...globSync("*.md", { cwd: root }), ...globSync("docs/*.md", { cwd: root })]) {
    const text = readFileSync(join(root, page), "utf8");
    for (const [, link = ""] of text.matchAll(/\]\((?!https?:|#)([^)#\s]+)/g)) {
      t.ok(existsSync(join(root, dirname(page), link)), `${page} links to ${link}`);
    }
  }
  t.end();
});

t.test("paths below src in the documents exist", (t) => {
  const root = dirname(src);
  for (const page of globSync(["README.md", "docs/*.md"], { cwd: root })) {
    const text = readFileSync(join(root, page), "utf8");
    for (const [, path = ""] of text.matchAll(/`(src\/[^`\s]*)`/g)) {
      // GROUP, KIND, NAME and … stand for any name: what precedes them is checked.
      const [fixed = ""] = path.split(/\/[^/]*(?:[A-Z]{4,}|…)/);
      t.ok(globSync(fixed, { cwd: root }).length > 0, `${page} names ${path}`);
    }
  }
  t.end();
});

t.test("the readers and writers of bytes in schema import no schema", (t) => {
  const codecs =
    /^schema\/(?:json\/(?:parse|scanner)|cbor\/(?:decode|writer)|protobuf\/(?:wire|envelope)|yaml\/[\w-]+)\.ts$/;
  const checked = sources.filter(({ path }) => codecs.test(path));
  t.ok(checked.length >= 7);
  for (const { path, imports } of checked) {
    t.notOk(
      imports.some(({ target }) => target === "schema/schema.ts"),
      path,
    );
  }
  t.end();
});

/** Tests, benchmarks and fuzz targets lie beside their subject, and are no part of the product. */
function isTest(path: string): boolean {
  return /\.(?:test|bench|fuzz)\.ts$/.test(path);
}

function isProduct(path: string): boolean {
  return !isTest(path) && !/^(?:acceptance|testing|bench)\//.test(path);
}

function packageOf(path: string): string {
  // Benchmarks lie beside their subject and may import what src/bench may.
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
      typeOnly: type !== undefined || onlyTypes || dynamic !== undefined,
      dynamic: dynamic !== undefined,
    };
  });
}

/** A line of code without its string literals; a comment keeps them. */
function withoutQuotes(line: string): string {
  return /^\s*(?:\/?\*|\/\/)/.test(line)
    ? line.replaceAll(/"[^"]*"|`[^`]*`/g, "")
    : line.replaceAll(/(["'`]).*?\1/g, "");
}

/** A line of code without its string literals, which may be long messages. */
function withoutText(line: string): string {
  return /^\s*(?:\/?\*|\/\/)/.test(line) ? line : line.replaceAll(/(["'`]).*\1/g, "");
}

/** Without comments. */
function code(text: string): string {
  return text.replaceAll(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, "");
}

/** Each cycle of a graph once, as the path that closes it. */
function cycles(graph: ReadonlyMap<string, readonly string[]>): string[] {
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
