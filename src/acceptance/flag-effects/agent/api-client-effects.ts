/** Effects of the flags for API client, events and logging. */
import type { Test } from "tap";
import { loadAgentConfig } from "../../../agent/config/load.ts";
import { type AgentFlagName, createTestAgent, type TestAgent } from "../../../testing/agent/flag-harness.ts";
import { alphaLogging, captureLog, type Effect, expectEventLimit, expectRequestLimit } from "./support.ts";

/** Expects a line of the agent that verbosity 4 has. */
async function expectVerboseLines(t: Test, agent: TestAgent): Promise<void> {
  await agent.start();
  agent.createPod("web");
  await agent.untilRunning("web");
  t.match(agent.logged(), /Pod changes state/);
}

export const apiClientEffects: Partial<Record<AgentFlagName, Effect>> = {
  "svc-api-qps": {
    set: { "svc-api-qps": "1", "svc-api-burst": "4" },
    async verify(t, agent) {
      await expectRequestLimit(t, agent, 4);
    },
  },
  "svc-api-burst": {
    set: { "svc-api-qps": "1", "svc-api-burst": "6" },
    async verify(t, agent) {
      await expectRequestLimit(t, agent, 6);
    },
  },
  "svc-api-content-type": {
    set: { "svc-api-content-type": "application/vnd.kubernetes.protobuf" },
    async verify(t, agent) {
      const types: (string | undefined)[] = [];
      const { transport } = agent.api;
      Object.assign(agent.api, {
        transport: (request: Parameters<typeof transport>[0]) => {
          if (request.method === "POST") types.push(request.headers["content-type"]);
          return transport(request);
        },
      });
      await agent.start();
      await agent.until("two writes", () => types.length > 1);
      t.strictSame(
        types.slice(0, 2),
        ["application/vnd.kubernetes.protobuf", "application/json"],
        "then the type that the server accepts",
      );
    },
  },
  "event-burst": {
    set: { "event-qps": "1", "event-burst": "2" },
    async verify(t, agent) {
      await expectEventLimit(t, agent, 2);
    },
  },
  "event-qps": {
    set: { "event-qps": "1", "event-burst": "1" },
    async verify(t, agent) {
      await expectEventLimit(t, agent, 1);
    },
  },
  "logging-format": {
    set: { "logging-format": "json", "feature-gates": "LoggingBetaOptions=true" },
    async verify(t, agent) {
      using log = captureLog(agent);
      t.match(JSON.parse(log.err.split("\n")[0]!), { msg: "hello" });
    },
  },
  "log-text-split-stream": {
    set: { "log-text-split-stream": "true", ...alphaLogging },
    async verify(t, agent) {
      using log = captureLog(agent);
      t.match(log, { out: /hello/, err: /oh/ });
    },
  },
  "log-json-split-stream": {
    set: { "log-json-split-stream": "true", "logging-format": "json", ...alphaLogging },
    async verify(t, agent) {
      using log = captureLog(agent);
      t.match(log, { out: /"hello"/, err: /"oh"/ });
    },
  },
  "log-text-info-buffer-size": {
    set: { "log-text-info-buffer-size": "4Ki", "log-text-split-stream": "true", ...alphaLogging },
    async verify(t, agent) {
      using log = captureLog(agent);
      t.equal(log.clock.pending, 1, "a flush is due");
    },
  },
  "log-json-info-buffer-size": {
    set: {
      "log-json-info-buffer-size": "4Ki",
      "log-json-split-stream": "true",
      "logging-format": "json",
      ...alphaLogging,
    },
    async verify(t, agent) {
      using log = captureLog(agent);
      t.equal(log.clock.pending, 1, "a flush is due");
    },
  },
  "log-flush-frequency": {
    set: {
      "log-flush-frequency": "2s",
      "log-text-info-buffer-size": "4Ki",
      "log-text-split-stream": "true",
      ...alphaLogging,
    },
    async verify(t, agent) {
      using log = captureLog(agent);
      await log.clock.advance(1999);
      t.equal(log.flushes(), 0);
      await log.clock.advance(1);
      t.ok(log.flushes() > 0);
    },
  },
  v: {
    set: { v: "4" },
    async verify(t, agent) {
      using log = captureLog(agent);
      t.match(log.err, /three/);
      t.notMatch(log.err, /five/);
      await expectVerboseLines(t, agent);
    },
  },
  vmodule: {
    set: { vmodule: "store=5" },
    async verify(t, agent) {
      using log = captureLog(agent);
      t.notMatch(log.err, /three/);
      t.match(log.err, /five/);
      await using other = await createTestAgent("flag", { vmodule: "*=4" });
      await expectVerboseLines(t, other);
    },
  },
  "feature-gates": {
    set: { "feature-gates": "LoggingAlphaOptions=true", "log-text-split-stream": "true" },
    async verify(t, agent) {
      t.ok(agent.effective.gates.has("LoggingAlphaOptions"));
      t.throws(() => loadAgentConfig(["--log-text-split-stream"], {}), /needs feature gate LoggingAlphaOptions/);
    },
  },
};
