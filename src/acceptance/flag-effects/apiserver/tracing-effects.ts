/** Effects of the flag and the gate of tracing. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Test } from "tap";
import { startCollector } from "../../../testing/tracing/collector.ts";
import type { Effect, Name, Settings, startServer } from "./support.ts";

/** Flags of a server that exports all spans to the endpoint. */
export function tracingTo(t: Test, endpoint: string): Settings {
  const folder = mkdtempSync(join(tmpdir(), "svc-tracing-"));
  t.teardown(() => rmSync(folder, { recursive: true }));
  const path = join(folder, "tracing.json");
  const identity = { apiVersion: "apiserver.svc.io/v1beta1", kind: "TracingConfiguration" };
  writeFileSync(path, JSON.stringify({ ...identity, endpoint, samplingRatePerMillion: 1_000_000 }));
  return { "tracing-config-file": path };
}

export function tracingEffects(start: typeof startServer): Partial<Record<Name, Effect>> {
  return {
    "tracing-config-file": async (t) => {
      const collector = await startCollector(t);
      {
        await using server = await start(tracingTo(t, collector.endpoint));
        await server.send("GET /api/v1/namespaces");
      }
      t.ok(collector.spans.some(({ name }) => name === "GET /api/v1/namespaces"));
    },
  };
}
