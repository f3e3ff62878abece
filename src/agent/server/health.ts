/** `/healthz` and its checks, in the format of Kubernetes' components. */
import type { HttpResponse } from "../../http/message.ts";
import { textResponse } from "../../http/respond.ts";
import { goErrorResponse } from "./go-responses.ts";

export interface HealthCheck {
  readonly name: string;
  /** The reason why the check fails; undefined when it passes. */
  readonly check: () => string | undefined;
}

/** Kubernetes' checks of an agent; `syncloop` fails with the agent's problems. `observe` gets the result of each. */
export function createHealthChecks(
  problems: () => readonly string[],
  observe: (name: string, ok: boolean) => void = () => undefined,
): readonly HealthCheck[] {
  const pass = (): undefined => undefined;
  const checks: readonly HealthCheck[] = [
    { name: "ping", check: pass },
    { name: "log", check: pass },
    { name: "syncloop", check: () => (problems().length === 0 ? undefined : problems().join("; ")) },
    // There is no manager of device plugins that could fail.
    { name: "device-plugin", check: pass },
  ];
  return checks.map(({ name, check }) => ({
    name,
    check() {
      const reason = check();
      observe(name, reason === undefined);
      return reason;
    },
  }));
}

/** The result of all checks; those named by the query's `exclude` are skipped, `verbose` lists those that pass. */
export function createHealthResponse(checks: readonly HealthCheck[], query: string): HttpResponse {
  const parameters = new URLSearchParams(query);
  const excluded = new Set(parameters.getAll("exclude"));
  let failed = false;
  const lines = checks.map(({ name, check }) => {
    if (excluded.has(name)) return `[+]${name} excluded: ok\n`;
    if (check() === undefined) return `[+]${name} ok\n`;
    failed = true;
    return `[-]${name} failed: reason withheld\n`;
  });
  const unknown = [...excluded].filter((name) => !checks.some((check) => check.name === name)).sort();
  if (unknown.length > 0) {
    const names = unknown.map((name) => JSON.stringify(name)).join(",");
    lines.push(`warn: some health checks cannot be excluded: no matches for ${names}\n`);
  }
  if (failed) return goErrorResponse(500, `${lines.join("")}healthz check failed`);
  const text = parameters.has("verbose") ? `${lines.join("")}healthz check passed\n` : "ok";
  return textResponse(200, text, { "x-content-type-options": "nosniff" });
}

/** `/healthz/ping`: one check, with its reason. */
export function createCheckResponse({ check }: HealthCheck): HttpResponse {
  const reason = check();
  return reason === undefined ? textResponse(200, "ok") : goErrorResponse(500, `internal server error: ${reason}`);
}
