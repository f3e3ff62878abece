/**
 * Run by `make bench`: prints the CPU time that audit at level Metadata, to a file in mode batch, adds to a request, as
 * JSON lines; that of all threads, with the writes.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { AuditAnnotations } from "../../admission/chain/audit-annotations.ts";
import { openAuditor } from "../../audit/auditor.ts";
import { makeRequest } from "../../http/request.ts";
import { textResponse } from "../../http/respond.ts";
import { systemRandom } from "../../std/crypto/random.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { MetricRegistry } from "../../std/metrics/metrics.ts";
import { systemClock } from "../../std/time/clock.ts";
import { withAudit } from "../filters/audit.ts";
import type { RequestContext, RequestHandler } from "../request/request-context.ts";
import { parseRequestInfo } from "../request/request-info.ts";

const CALLS = 10_000;
const ROUNDS = 6;
/** Calls between two turns of the event loop, in which batches are written. */
const CALLS_PER_TURN = 16;

const folder = mkdtempSync(join(tmpdir(), "svc-bench-audit-"));
const batch = { bufferSize: 1_000_000, maxSize: 1, maxWaitMs: 0, throttle: undefined };
const truncate = { enabled: false, maxEventSize: 102_400, maxBatchSize: 10_485_760 };
const file = { path: join(folder, "audit.log"), maxSizeMb: 10_000, maxBackups: 1, maxAgeDays: 0, compress: false };

const groups = ["team", "system:authenticated"];
const user = { name: "jo", uid: "", groups, extra: {} };
const response = textResponse(200, "ok");
const annotations = new AuditAnnotations();
annotations.add("authorization.k8s.io/decision", "allow");
annotations.add("authorization.k8s.io/reason", 'RBAC: allowed by ClusterRoleBinding "team" of ClusterRole "edit"');

function contextOf(method: string): RequestContext {
  const path = "/api/v1/namespaces/default/configmaps/settings";
  const headers = { "user-agent": "kubectl/v1.33.0 (linux/amd64) kubernetes/8adc0f0" };
  const request = makeRequest({ method, path, query: "", headers });
  return {
    request,
    info: parseRequestInfo(request),
    user,
    signal: new AbortController().signal,
    warnings: [],
    auditId: "5f5b4c62-1f0d-4d1f-9d0a-0d6a3f3c2b1a",
    annotations,
    responseHeaders: {},
  };
}

const context = contextOf("GET");
try {
  for (const [title, omitStages] of [
    ["both stages", []],
    ["without RequestReceived", ["RequestReceived"]],
  ] as const) {
    const policyFile = join(folder, "policy.json");
    const rules = [{ level: "Metadata" }];
    writeFileSync(policyFile, JSON.stringify({ apiVersion: "audit.svc.io/v1", kind: "Policy", omitStages, rules }));
    const log = { ...file, format: "json", version: "audit.svc.io/v1", mode: "batch", batch, truncate } as const;
    const auditor = await openAuditor(
      { policyFile, log, webhook: undefined },
      { clock: systemClock, log: silentLogger, metrics: new MetricRegistry(), random: systemRandom },
    );
    const plain: RequestHandler = async () => response;
    const audited = withAudit(auditor, systemClock, silentLogger)(plain);
    const us = (await cpuUs(audited)) - (await cpuUs(plain));
    await auditor[Symbol.asyncDispose]();
    checkLog(2 - omitStages.length);
    process.stdout.write(`${JSON.stringify({ measuring: `audit, Metadata, ${title}`, us: Number(us.toFixed(2)) })}\n`);
  }
} finally {
  rmSync(folder, { recursive: true });
}

/** Events that were dropped would cost nothing. */
function checkLog(eventsPerCall: number): void {
  const lines = readFileSync(file.path, "utf8").split("\n").length - 1;
  const expected = eventsPerCall * CALLS * (ROUNDS + 1);
  if (lines !== expected) throw new Error(`Expected ${expected} events in the log, got ${lines}`);
  rmSync(file.path);
}

/** The best of the rounds, after one to warm up. */
async function cpuUs(handle: RequestHandler): Promise<number> {
  let best = Number.POSITIVE_INFINITY;
  for (let round = 0; round <= ROUNDS; round++) {
    const before = process.cpuUsage();
    for (let call = 0; call < CALLS; call++) {
      await handle(context);
      if (call % CALLS_PER_TURN === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    const { user: own, system } = process.cpuUsage(before);
    if (round > 0) best = Math.min(best, (own + system) / CALLS);
  }
  return best;
}
