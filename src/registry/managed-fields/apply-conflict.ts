/** The 409 of server-side apply: a cause for each field that another manager owns. */
import { StatusError } from "../../api/status.ts";
import { formatPath } from "../../schema/apply/fieldpath/path-element.ts";
import type { Conflict, ManagedFields } from "../../schema/apply/managers.ts";
import { goQuote } from "../../schema/value/go-quote.ts";
import type { Manager } from "./entries.ts";

/** The maximum number of conflicts in a status. */
const CONFLICTS_MAX = 100;

export function applyConflict(conflicts: readonly Conflict[], managers: ManagedFields<Manager>): StatusError {
  const causes = conflicts.slice(0, CONFLICTS_MAX).map(({ manager, path }) => ({
    reason: "FieldManagerConflict",
    message: `conflict with ${formatManager(managers.get(manager))}`,
    field: formatPath(path),
  }));
  return new StatusError(409, "Conflict", conflictMessage(conflicts, managers), { details: { causes } });
}

function conflictMessage(conflicts: readonly Conflict[], managers: ManagedFields<Manager>): string {
  const [first] = conflicts;
  if (conflicts.length === 1 && first !== undefined) {
    const who = formatManager(managers.get(first.manager));
    return `Apply failed with 1 conflict: conflict with ${who}: ${formatPath(first.path)}`;
  }
  const omitted = conflicts.length - CONFLICTS_MAX;
  const byManager = Map.groupBy(conflicts.slice(0, CONFLICTS_MAX), ({ manager }) => manager);
  const names = [...byManager.keys()].map((name) => [orderOf(managers.get(name)), name] as const);
  const texts = names
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, manager]) => {
      const paths = byManager.get(manager)!.map(({ path }) => `- ${formatPath(path)}`);
      return [`conflicts with ${formatManager(managers.get(manager))}:`, ...paths].join("\n");
    });
  if (omitted > 0) texts.push(`and ${omitted} more`);
  return `Apply failed with ${conflicts.length} conflicts: ${texts.join("\n")}`;
}

/** Kubernetes orders managers by the JSON of their entries. */
function orderOf(entry: Manager | undefined): string {
  if (entry === undefined) return "";
  const { manager, operation, apiVersion, subresource } = entry;
  return JSON.stringify({
    manager,
    operation,
    ...(operation === "Update" ? { apiVersion } : {}),
    ...(subresource === "" ? {} : { subresource }),
  });
}

function formatManager(manager: Manager | undefined): string {
  if (manager === undefined) return '""';
  const { manager: name, operation, apiVersion, subresource } = manager;
  const through = subresource === "" ? "" : ` with subresource ${goQuote(subresource)}`;
  return `${goQuote(name)}${through}${operation === "Update" ? ` using ${apiVersion}` : ""}`;
}
