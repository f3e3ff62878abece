/** Every flag of every program: through parser, help, wrong value, configuration file, completion and reference. */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import fc from "fast-check";
import t from "tap";
import { apiserverProgram } from "../../apiserver/flags/flags.ts";
import { completionScript, shells } from "../../flags/completion.ts";
import { type Flag, FlagError, type FlagTable, printValue, ValueError } from "../../flags/flag.ts";
import { renderHelp, signature } from "../../flags/help.ts";
import { isChanged, parseCommandLine } from "../../flags/parse.ts";
import { invoke } from "../../flags/program.ts";
import { renderReference } from "../../flags/reference.ts";
import { programs } from "./programs.ts";

const root = new URL("../../../", import.meta.url);

/** The table with every flag in effect and without relations, which other tests cover. */
function withoutRelations(table: FlagTable): FlagTable {
  return Object.fromEntries(
    Object.entries(table).map(([name, { excludes: _excludes, requires: _requires, inert: _inert, ...row }]) => [
      name,
      row,
    ]),
  );
}

function problemsOf(run: () => unknown): readonly string[] {
  try {
    run();
  } catch (error) {
    if (error instanceof FlagError) return error.problems;
    throw error;
  }
  return [];
}

for (const program of programs) {
  const table = withoutRelations(program.flags);
  const rows: readonly (readonly [string, Flag])[] = Object.entries(table);

  t.test(`${program.name}: every flag accepts its default and its sample, in one word and in two`, async (t) => {
    for (const [name, row] of rows) {
      const { type } = row;
      const sample = type.parse(type.sample);
      const one = parseCommandLine(table, [`--${name}=${type.sample}`]);
      t.same(one.values[name], sample, `--${name}=${type.sample}`);
      t.ok(one.given.has(name), name);
      if (type.bare === undefined) {
        t.same(parseCommandLine(table, [`--${name}`, type.sample]).values[name], sample, `--${name} ${type.sample}`);
      } else {
        t.same(parseCommandLine(table, [`--${name}`]).values[name], type.parse(type.bare), `--${name}`);
      }
      const underscored = `--${name.replaceAll("-", "_")}=${type.sample}`;
      t.same(parseCommandLine(table, [underscored]).values[name], sample, underscored);
      t.same(parseCommandLine(table, []).values[name], row.default, `${name} by default`);
    }
  });

  t.test(`${program.name}: every printed value parses to the same value`, async (t) => {
    for (const [name, row] of rows) {
      const repeatable = row.type.name === "string, repeatable" || row.type.name === "map";
      const values = repeatable ? [row.type.parse(row.type.sample)] : [row.default, row.type.parse(row.type.sample)];
      for (const value of values) {
        const text = printValue(row, value);
        if (text === "" && typeof value === "string") continue;
        t.same(row.type.parse(text), value, `--${name}=${text}`);
      }
    }
  });

  t.test(`${program.name}: every wrong value is refused with flag, value and what is allowed`, async (t) => {
    for (const [name, { type }] of rows) {
      if (type.wrong === undefined) continue;
      const [problem = "", ...more] = problemsOf(() => parseCommandLine(table, [`--${name}=${type.wrong}`]));
      t.same(more, [], name);
      t.ok(problem.startsWith(`--${name}=${JSON.stringify(type.wrong)}: `), problem);
      t.throws(() => type.parse(type.wrong!), ValueError, name);
    }
  });

  t.test(`${program.name}: a misspelt flag gets a suggestion`, async (t) => {
    for (const [name] of rows) {
      if (name.length < 8) continue;
      const [problem] = problemsOf(() => parseCommandLine(table, [`--${name.slice(0, 3)}${name.slice(4)}=1`]));
      t.match(problem, /^unknown flag --.*: did you mean --/, name);
    }
  });

  t.test(`${program.name}: help shows every flag with type and default, within the width`, async (t) => {
    for (const columns of [60, 80, 120]) {
      const help = renderHelp(program.flags, { name: program.name, summary: program.summary, columns });
      for (const [name, row] of rows) {
        t.ok(help.includes(`${signature(name, row)}\n`), name);
        const text = printValue(row, row.default);
        const shown = row.defaultNote ?? (row.type.name === "bool" && text === "false" ? "" : text);
        if (shown !== "" && columns === 120)
          t.ok(help.replace(/\s+/g, " ").includes(`(default ${shown})`), `${name} ${shown}`);
      }
      const long = help.split("\n").filter((line) => line.length > columns && line.trim().includes(" "));
      t.same(
        long.filter((line) => !line.trim().startsWith("--")),
        [],
        `${columns} columns`,
      );
    }
  });

  t.test(`${program.name}: completion contains every flag`, async (t) => {
    for (const shell of shells) {
      const script = completionScript(shell, programs);
      for (const [name] of rows) {
        const spelled = shell === "fish" ? (name.length === 1 ? `-s ${name} ` : `-l ${name} `) : `--${name}`;
        t.ok(script.includes(spelled), `${shell} ${name}`);
      }
    }
  });

  t.test(`${program.name}: docs/flags-${program.word}.md is the output of \`make docs\``, async (t) => {
    t.equal(readFileSync(new URL(`docs/flags-${program.word}.md`, root), "utf8"), renderReference(program));
  });
}

t.test("every value type parses any text or throws a ValueError", async (t) => {
  const types = programs.flatMap(({ flags }) => Object.values(flags).map((row: Flag) => row.type));
  const text = fc.oneof(fc.string(), fc.string({ unit: fc.constantFrom(..."0159-+.,:;=</%aKMimsh[]\"' *") }));
  const seed = 20_261_121;
  fc.assert(
    fc.property(fc.constantFrom(...types), text, (type, value) => {
      try {
        const parsed = type.parse(value);
        type.print(parsed);
      } catch (error) {
        if (!(error instanceof ValueError)) throw error;
      }
    }),
    { seed, numRuns: 5000 },
  );
  t.pass(`seed ${seed}`);
});

t.test("completionScript() for bash is a script that completes words, flags and values", async (t) => {
  const script = completionScript("bash", programs);
  const complete = (...words: string[]): string[] => {
    const run = `${script}
compopt() { :; }
COMP_WORDS=(${words.map((word) => `'${word}'`).join(" ")}); COMP_CWORD=${words.length - 1}
_svc; printf '%s\\n' "\${COMPREPLY[@]}"`;
    return execFileSync("bash", ["-c", run], { encoding: "utf8" })
      .split("\n")
      .filter((line) => line !== "");
  };
  t.same(complete("svc", "a"), ["apiserver", "agent"]);
  t.same(complete("svc", "apiserver", "--secure-p"), ["--secure-port="]);
  t.same(complete("svclet", "--max-po"), ["--max-pods="]);
  t.same(complete("svc", "agent", "--cgroup-driver", "=", "s"), ["systemd"]);
  t.same(complete("svc", "agent", "--cgroup-driver", ""), ["cgroupfs", "systemd"]);
  t.same(complete("svc", "completion", "z"), ["zsh"]);
  t.same(complete("svc", "token", "c"), ["create"]);
  t.same(complete("svc", "token", "create", "--t"), ["--ttl="]);
});

t.test("a flag that requires others is refused without each of them, whatever its value", async (t) => {
  for (const { word, flags } of programs) {
    for (const [name, row] of Object.entries(flags) as [string, Flag][]) {
      const texts = [row.type.sample, row.type.print(row.default)].filter((text) => text !== "false");
      for (const other of row.inert === undefined ? (row.requires ?? []) : []) {
        for (const text of texts) {
          const problems = problemsOf(() => parseCommandLine(flags, [`--${name}=${text}`]));
          t.ok(problems.includes(`--${name} needs --${other} as well`), `${word} --${name}=${text}`);
        }
      }
    }
  }
});

t.test("flags without effect accept only their default, and no other flag loses its effect", async (t) => {
  const file = new URL("testdata/flags-without-effect.json", root);
  const listed = JSON.parse(readFileSync(file, "utf8")) as Readonly<Record<string, readonly string[]>>;
  for (const { word, flags } of programs) {
    const idle = Object.entries(flags).filter(([, row]) => row.inert !== undefined);
    const names = idle.map(([name]) => name);
    t.same(
      names.filter((name) => !listed[word]?.includes(name)),
      [],
      `${word}: flags without effect that are not listed`,
    );
    t.comment(`${word}: ${names.length} of ${Object.keys(flags).length} flags without effect`);
    for (const [name, row] of idle) {
      t.same(
        problemsOf(() => parseCommandLine(flags, [`--${name}=${row.type.print(row.default)}`])),
        [],
        name,
      );
      const value = row.type.parse(row.type.sample);
      if (!isChanged(row, value)) continue;
      const problems = problemsOf(() => parseCommandLine(flags, [`--${name}=${row.type.sample}`]));
      t.ok(
        problems.some(
          (problem) =>
            problem.startsWith(`--${name}=`) && problem.includes(`the flag has no effect because ${row.inert}; `),
        ),
        name,
      );
    }
  }
});

t.test("invoke() handles all variants of --version, --help and mistakes without throwing", async (t) => {
  const run = (...argv: string[]) => invoke(apiserverProgram, argv, { version: "v1.33.0" });
  t.match(run("--version"), { kind: "exit", code: 0, stdout: "apiserver v1.33.0\n" });
  t.match(run("--version=raw"), { kind: "exit", code: 0, stdout: /"gitVersion":"v1.33.0"/ });
  t.match(run("--version=v1.33.7-site"), { kind: "run", version: "v1.33.7-site" });
  t.match(run("--version=false"), { kind: "run", version: "v1.33.0" });
  t.match(run("--nonsense", "-h"), { kind: "exit", code: 0, stdout: /Usage:/ });
  t.match(run("--nonsense"), { kind: "exit", code: 1, stderr: /unknown flag --nonsense/ });
  t.match(run("--feature-gates=Nope=true"), { kind: "exit", code: 1, stderr: /unknown feature gate Nope/ });
  t.match(run("--feature-gates=QOSReserved=true,VolumeCapacityPriority=true"), {
    kind: "run",
    warnings: [/QOSReserved=true has no effect/, /VolumeCapacityPriority=true has no effect/],
  });
  t.match(run("--log-text-split-stream"), { kind: "exit", code: 1, stderr: /needs feature gate LoggingAlphaOptions/ });
  t.match(run("--log-text-split-stream", "--feature-gates=svc:LoggingAlphaOptions=true"), { kind: "run" });
  t.match(run("--feature-gates=SidecarContainers=true"), {
    kind: "run",
    warnings: [/GA feature gate SidecarContainers/],
  });
});

const shared = new URL(process.env.SVC_SHARED ? `file://${process.env.SVC_SHARED}/` : "../shared/", root);
const specified = new URL("spec/flags.json", shared);
const specifiedCount = 298;

interface SpecifiedFlag {
  readonly component: "agent" | "api-server" | "apiserver";
  readonly flag: string;
  readonly type: string;
  readonly default: string | null;
  readonly config_file: boolean;
  readonly default_linux?: string;
}

/** Type names of ours that stand for a type name of the specification. */
const typeNames: Readonly<Record<string, readonly string[]>> = {
  string: ["string", "cert,key[:names]"],
  strings: ["strings"],
  "key=value pairs": ["key=value pairs"],
  "`key=value` pairs": ["key=value pairs"],
  "`key=value`": ["key=value"],
  "list of `key=true/false`": ["Gate=true,..."],
  "`component:key=value` list": ["component:Gate=true,..."],
  "version[=true]": ["version"],
  "`pattern=N,...`": ["pattern=N,..."],
  "`N1-N2`": ["N1-N2"],
};

/** Defaults that the specification gives in words. */
const wordedDefaults: ReadonlySet<string> = new Set([
  "container-runtime-endpoint",
  "image-service-endpoint",
  "pod-infra-container-image",
]);

t.test("flag tables hold every specified flag with its type and default", async (t) => {
  if (!existsSync(specified)) {
    console.log(`shared/ is not present: ${specifiedCount} checks left out`);
    return;
  }
  const all = JSON.parse(readFileSync(specified, "utf8")) as readonly SpecifiedFlag[];
  t.equal(all.length, specifiedCount);
  for (const wanted of all) {
    const program = programs.find(({ word }) => word === (wanted.component === "agent" ? "agent" : "apiserver"));
    const name = wanted.flag.replace(/^-+/, "");
    const [found, row] =
      Object.entries(program?.flags ?? {}).find(([long, { short }]) => long === name || short === name) ?? [];
    const label = `${program?.word} ${wanted.flag}`;
    if (row === undefined) {
      t.fail(`${label} is missing`);
      continue;
    }
    t.ok(
      (typeNames[wanted.type] ?? [wanted.type]).includes(row.type.name),
      `${label}: ${wanted.type} is ${row.type.name}`,
    );
    if (wanted.config_file) t.ok(row.config, `${label} has a field in the file`);
    if (wordedDefaults.has(found ?? "")) continue;
    const unset = row.type.print(row.type.name === "bool" ? false : row.default);
    if (wanted.default === null) t.ok(["", "0", "0s", "false"].includes(unset), `${label} is unset, not ${unset}`);
    else t.same(row.default, row.type.parse(wanted.default_linux ?? wanted.default), `${label} = ${wanted.default}`);
  }
});
