/** The output of doctor: text for people, JSON for programs, and the exit status; and the page of its findings. */
import type { Forecast } from "../forecast/forecast.ts";
import type { Finding, Severity } from "./finding.ts";
import { type FindingId, findingKinds } from "./finding-kinds.ts";

const order = Object.keys(findingKinds) as readonly FindingId[];
const labels: Readonly<Record<Severity, string>> = { ok: "ok", warning: "WARNING", error: "ERROR" };
const ranks: Readonly<Record<Severity, number>> = { error: 0, warning: 1, ok: 2 };
const LABEL_WIDTH = "WARNING".length;

/** Errors first, then warnings; each in the order of the table. */
export function sortFindings(findings: readonly Finding[]): readonly Finding[] {
  return [...findings].sort(
    (a, b) => ranks[a.severity] - ranks[b.severity] || order.indexOf(a.id) - order.indexOf(b.id),
  );
}

/** 0: all ok, 1: warnings, 2: errors. */
export function exitCode(findings: readonly Finding[]): 0 | 1 | 2 {
  const has = (severity: Severity): boolean => findings.some((each) => each.severity === severity);
  return has("error") ? 2 : has("warning") ? 1 : 0;
}

export function renderText(findings: readonly Finding[], verbose: boolean): string {
  const shown = findings.filter(({ severity }) => verbose || severity !== "ok");
  const width = Math.max(0, ...shown.map(({ id }) => id.length));
  const indent = " ".repeat(LABEL_WIDTH + 2);
  const lines = shown.flatMap(({ id, severity, found }) => {
    const head = `${labels[severity].padEnd(LABEL_WIDTH)}  ${id.padEnd(width)}  ${printable(found)}`;
    if (severity === "ok") return [head];
    const { meaning, remedy } = findingKinds[id];
    return [head, `${indent}${meaning}`, `${indent}To do: ${remedy}`, ""];
  });
  return [...lines, renderSummary(findings, verbose), ""].join("\n");
}

/** Without control characters, which values of files and other processes may have. */
function printable(text: string): string {
  return text.replace(/\p{Cc}+/gu, " ").trim();
}

function renderSummary(findings: readonly Finding[], verbose: boolean): string {
  const count = (severity: Severity): number => findings.filter((each) => each.severity === severity).length;
  const [errors, warnings, ok] = [count("error"), count("warning"), count("ok")];
  const hint = verbose || ok === 0 ? "" : " (-v lists them)";
  return `${plural(errors, "error")}, ${plural(warnings, "warning")}, ${ok} ok${hint}`;
}

function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

/** `forecast`: undefined when no agent runs. */
export function renderJson(program: string, findings: readonly Finding[], forecast: Forecast | undefined): string {
  const items = findings.map(({ id, severity, found }) => {
    const { area, meaning, remedy } = findingKinds[id];
    return { id, area, severity, found: printable(found), ...(severity === "ok" ? {} : { meaning, remedy }) };
  });
  const report = { program, exitStatus: exitCode(findings), findings: items, forecast: forecast ?? null };
  return `${JSON.stringify(report, undefined, 2)}\n`;
}

/** `docs/doctor.md`. */
export function renderFindings(): string {
  const rows = Object.entries(findingKinds).map(([id, { area, meaning, remedy }]) => {
    const cells = [`\`${id}\``, area, meaning, remedy];
    return `| ${cells.map((cell) => cell.replaceAll("|", "\\|").replaceAll("<", "\\<")).join(" | ")} |`;
  });
  return `${[
    "# Findings of `svc doctor`",
    "",
    "<!-- Written by `make docs` from the table of findings; change that. -->",
    "",
    "`svc doctor` checks what `svc up` needs, `svc agent doctor` what the agent needs, with the same flags and files.",
    "Nothing is changed. Each finding is ok, a warning or an error; the exit status is 0, 1 or 2.",
    "[node-agent.md](node-agent.md#diagnosis) describes how.",
    "",
    "| Finding | Area | What it means when it is not ok | To do |",
    "|---|---|---|---|",
    ...rows,
  ].join("\n")}\n`;
}
