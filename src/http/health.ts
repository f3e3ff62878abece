/** `/healthz`, `/livez` and `/readyz`: named checks, served one by one or all together. */

import type { Logger } from "../std/log/logger.ts";
import type { HttpResponse } from "./message.ts";
import { textResponse } from "./respond.ts";

export interface HealthCheck {
  readonly name: string;
  /** An alternative name in paths and in `exclude`. */
  readonly alias?: string;
  /** Whether clients receive the reason of a failure. */
  readonly showReason?: boolean;
  /** Whether the list of checks has it only when it fails: Kubernetes has no such check. */
  readonly hideSuccess?: boolean;
  /** Throws or rejects when the check fails. */
  check(): void | Promise<void>;
}

export interface HealthEndpoint {
  /** `readyz` */
  readonly name: string;
  readonly checks: readonly HealthCheck[];
  /** Called with the result of each check. */
  readonly observe?: (check: string, ok: boolean) => void;
}

const NOSNIFF = { "x-content-type-options": "nosniff" };

/** `check` is empty for all checks. The reason of a failure is logged; most checks do not send it to the client. */
export async function respondHealth(
  endpoint: HealthEndpoint,
  check: string,
  query: URLSearchParams,
  log: Logger,
): Promise<HttpResponse> {
  if (check !== "") return await respondSingleCheck(endpoint, check, log);
  const excluded = new Set(query.getAll("exclude").filter((name) => name !== ""));
  const lines: string[] = [];
  const failed: string[] = [];
  for (const check of endpoint.checks) {
    const { name, alias } = check;
    const excludedNames = [name, alias ?? name].filter((one) => excluded.delete(one));
    if (excludedNames.length > 0) {
      lines.push(`[+]${name} excluded: ok`);
      continue;
    }
    const error = await runCheck(endpoint, check);
    if (error === undefined && check.hideSuccess === true) continue;
    lines.push(error === undefined ? `[+]${name} ok` : `[-]${name} failed: ${publicReason(check, error)}`);
    if (error === undefined) continue;
    failed.push(name);
    log.warn("Health check failed", { endpoint: endpoint.name, check: name, reason: error.message });
  }
  if (excluded.size > 0) {
    const names = [...excluded]
      .sort()
      .map((name) => JSON.stringify(name))
      .join(",");
    lines.push(`warn: some health checks cannot be excluded: no matches for ${names}`);
  }
  if (failed.length > 0)
    return textResponse(500, `${[...lines, `${endpoint.name} check failed`].join("\n")}\n`, NOSNIFF);
  if (!query.has("verbose")) return textResponse(200, "ok", NOSNIFF);
  return textResponse(200, `${[...lines, `${endpoint.name} check passed`].join("\n")}\n`, NOSNIFF);
}

async function respondSingleCheck(endpoint: HealthEndpoint, name: string, log: Logger): Promise<HttpResponse> {
  const found = endpoint.checks.find((check) => check.name === name || check.alias === name);
  if (found === undefined) return pageNotFound();
  const error = await runCheck(endpoint, found);
  if (error === undefined) return textResponse(200, "ok");
  log.warn("Health check failed", { endpoint: endpoint.name, check: name, reason: error.message });
  return textResponse(500, `internal server error: ${publicReason(found, error)}\n`, NOSNIFF);
}

function publicReason(check: HealthCheck, error: Error): string {
  return check.showReason === true ? error.message : "reason withheld";
}

async function runCheck(endpoint: HealthEndpoint, check: HealthCheck): Promise<Error | undefined> {
  try {
    await check.check();
    endpoint.observe?.(check.name, true);
    return undefined;
  } catch (error) {
    endpoint.observe?.(check.name, false);
    return error instanceof Error ? error : new Error(String(error));
  }
}

/** The response for paths outside the API, with the text of Go's net/http. */
export function pageNotFound(): HttpResponse {
  return textResponse(404, "404 page not found\n", NOSNIFF);
}
