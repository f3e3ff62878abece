/** Renders `docs/doctor.md` from the table of findings. */
import { findingKinds } from "./finding-kinds.ts";

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
