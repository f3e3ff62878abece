/** Renders the reference pages `docs/flags-*.md` from the tables. */
import { type Flag, type FlagTable, printValue } from "./flag.ts";
import { gatesWithoutEffect } from "./gate-tables/without-effect.ts";
import type { Gate, GateTable } from "./gates.ts";
import { bySection } from "./help.ts";

export interface ReferencePage {
  /** `svc apiserver` */
  readonly name: string;
  readonly summary: string;
  readonly flags: FlagTable;
  readonly gates?: GateTable;
}

export function renderReference(page: ReferencePage): string {
  const lines = [
    `# Flags of \`${page.name}\``,
    "",
    "<!-- Written by `make docs` from the flag tables; change those. -->",
    "",
    page.summary,
    "",
    "A flag marked *default only* has no effect in this build, for the reason in its row: any other value is refused.",
  ];
  for (const [title, rows] of bySection(page.flags)) {
    lines.push("", `## ${title}`, "", "| Flag | Type | Default | Meaning |", "|---|---|---|---|");
    for (const [name, row] of rows) lines.push(renderRow(name, row));
  }
  if (page.gates !== undefined) lines.push(...renderGates(page.gates));
  return `${lines.join("\n")}\n`;
}

function renderRow(name: string, row: Flag): string {
  const short = row.short === undefined ? "" : `\`-${row.short}\`, `;
  const notes = [
    row.type.choices !== undefined && row.type.name !== "bool"
      ? `Values: ${row.type.choices.map((choice) => `\`${choice}\``).join(", ")}.`
      : "",
    row.gate === undefined ? "" : `Needs feature gate \`${row.gate}\`.`,
    row.excludes === undefined ? "" : `Not together with ${codes(row.excludes)}.`,
    row.requires === undefined ? "" : `Needs ${codes(row.requires)}.`,
    row.config === undefined ? "" : `In the file: \`${row.config}\`.`,
    row.fileDefault === undefined ? "" : `With a file, the default is \`${printValue(row, row.fileDefault)}\`.`,
    row.deprecated === undefined ? "" : `Deprecated: ${row.deprecated}`,
    row.inert === undefined ? "" : `*Default only*: ${row.inert}.`,
    row.redundant === undefined ? "" : `Changes nothing: ${row.redundant}.`,
  ].filter((note) => note !== "");
  const value = row.defaultNote ?? (printValue(row, row.default) === "" ? "" : `\`${printValue(row, row.default)}\``);
  const cells = [`${short}\`--${name}\``, row.type.name, value, [row.meaning, ...notes].join(" ")];
  return `| ${cells.map((cell) => cell.replaceAll("|", "\\|").replaceAll("<", "\\<")).join(" | ")} |`;
}

function codes(names: readonly string[]): string {
  return names.map((name) => `\`--${name}\``).join(", ");
}

const gateNotes = [
  "A gate with *yes* changes what this program does; one of other programs is accepted, so that one list can configure all",
  "components, with a warning in the log. The rest cannot change, or both values mean the same, for the reason in its row;",
  "a gate whose feature is missing cannot be enabled.",
];

function renderGates(gates: GateTable): string[] {
  const rows = Object.entries(gates).map(
    ([name, gate]) =>
      `| ${name} | ${gate.stage} | ${gate.default}${gate.locked ? ", locked" : ""} | ${describeEffect(name, gate)} |`,
  );
  return [
    "",
    "## Feature gates",
    "",
    ...gateNotes,
    "",
    "| Gate | Stage | Default | Effect |",
    "|---|---|---|---|",
    ...rows,
  ];
}

function describeEffect(name: string, { effective, locked }: Gate): string {
  if (effective) return locked ? "" : "yes";
  if (locked) return "";
  const reason = gatesWithoutEffect.get(name);
  return reason === undefined ? "in other programs" : `none: ${reason}`;
}
