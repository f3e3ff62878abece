/**
 * Compares the audit events of requests with those recorded of a Kubernetes 1.33 server, and what it says of policy
 * files. `testdata/recorded-differences/audit.json` lists the scenarios that differ by reason.
 *
 *     SVC_SCENARIO=audit/patch node src/acceptance/recorded-answers/audit.test.ts   prints the differences of these
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import t from "tap";
import { auditConfig } from "../../apiserver/config/audit-options.ts";
import { auditFlags } from "../../apiserver/flags/audit.ts";
import { openAuditor } from "../../audit/auditor.ts";
import { defaultFlags } from "../../flags/flag.ts";
import { systemRandom } from "../../std/crypto/random.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { MetricRegistry } from "../../std/metrics/metrics.ts";
import { systemClock } from "../../std/time/clock.ts";
import { RecordedDifferences } from "./recorded-differences.ts";
import type { Scenario } from "./scenario.ts";
import { Player, recordedScenarios, startRecordedServer } from "./scenarios.ts";

interface AuditScenario extends Omit<Scenario, "server"> {
  readonly server: {
    readonly auditPolicy?: object;
    readonly auditPolicyText?: string;
    readonly flags?: readonly string[];
  };
}

interface LastStep {
  readonly action?: string;
  readonly expect: {
    readonly events?: readonly unknown[];
    readonly lines?: readonly string[];
    readonly exit?: number;
  };
}

interface LoggedEvent {
  readonly auditID: string;
  readonly annotations?: Readonly<Record<string, string>>;
}

const LATENCY = "apiserver.latency.k8s.io/";

/** The flags of a scenario over the defaults, with events in the recorded version. */
function flagsOf(scenario: AuditScenario, folder: string): Parameters<typeof auditConfig>[0] {
  const given = (scenario.server.flags ?? []).map((text) => {
    const [name = "", value = ""] = text.slice(2).split("=");
    return [name, /^\d+$/.test(value) ? Number(value) : value === "true" ? true : value] as const;
  });
  return {
    ...defaultFlags(auditFlags),
    "audit-policy-file": join(folder, "policy"),
    "audit-log-path": join(folder, "audit.log"),
    "audit-log-version": "audit.k8s.io/v1",
    ...Object.fromEntries(given),
  };
}

async function play(scenario: AuditScenario, folder: string): Promise<string | undefined> {
  const { auditPolicy, auditPolicyText } = scenario.server;
  const policyFile = join(folder, "policy");
  writeFileSync(policyFile, auditPolicyText ?? JSON.stringify(auditPolicy));
  const last = scenario.steps.at(-1) as unknown as LastStep;
  if (last.action === "startup") return await playStart(scenario, last, folder);
  const config = auditConfig(flagsOf(scenario, folder));
  const server = await startRecordedServer({ audit: config }, "127.0.0.1:27443");
  const player = new Player(server);
  let difference: string | undefined;
  try {
    difference = await player.play({ ...scenario, server: undefined, steps: scenario.steps.slice(0, -1) });
  } finally {
    await server[Symbol.asyncDispose]();
  }
  return difference ?? compareLog(player, last, readFileSync(join(folder, "audit.log"), "utf8"), idsOf(scenario));
}

/** The audit ids of the requests, in their order. */
function idsOf({ steps }: Pick<Scenario, "steps">): readonly string[] {
  // The requests of a poll are not compared.
  return steps.flatMap(({ action, request }) => (action === "poll" ? [] : request?.headers?.["audit-id"] || []));
}

function compareLog(player: Player, { expect }: LastStep, log: string, ids: readonly string[]): string | undefined {
  const lines = log.split("\n").filter((line) => line !== "");
  if (expect.lines !== undefined) {
    const found = lines.filter((line) => ids.some((id) => line.includes(`id="${id}"`)));
    return player.compare(expect.lines, found, "lines");
  }
  const events = lines.map((line) => JSON.parse(line) as LoggedEvent);
  const found = ids.flatMap((id) => events.filter(({ auditID }) => auditID === id)).map(withoutLatency);
  return player.compare(expect.events, found, "events");
}

function withoutLatency({ annotations, ...event }: LoggedEvent): object {
  const kept = Object.entries(annotations ?? {}).filter(([name]) => !name.startsWith(LATENCY));
  return kept.length === 0 ? event : { ...event, annotations: Object.fromEntries(kept) };
}

async function playStart(scenario: AuditScenario, { expect }: LastStep, folder: string): Promise<string | undefined> {
  let message: string | undefined;
  try {
    const config = auditConfig(flagsOf(scenario, folder));
    const deps = { clock: systemClock, log: silentLogger, metrics: new MetricRegistry(), random: systemRandom };
    if (config !== undefined) await (await openAuditor(config, deps))[Symbol.asyncDispose]();
  } catch (error) {
    message = (error as Error).message.replaceAll(join(folder, "policy"), "<dir>/policy");
  }
  const wanted = expect.lines?.[0]?.replace(/^"command failed" err=/, "");
  const text = wanted === undefined ? undefined : (JSON.parse(wanted) as string);
  return message === text ? undefined : `${message}, not ${text}`;
}

t.setTimeout(120_000);
t.test("audit events and start-up errors are those of a Kubernetes 1.33 server", { timeout: 120_000 }, async (t) => {
  const recorded: unknown = recordedScenarios("audit", "recorded-apiserver-more");
  const scenarios = recorded as readonly AuditScenario[] | undefined;
  if (scenarios === undefined) {
    t.comment("Skipped: shared/ is not present");
    return;
  }
  const selected = process.env.SVC_SCENARIO;
  const differences = new RecordedDifferences("audit");
  for (const scenario of scenarios.filter(({ id }) => selected === undefined || id.includes(selected))) {
    const folder = mkdtempSync(join(tmpdir(), "recorded-audit-"));
    try {
      const difference = await play(scenario, folder);
      if (selected !== undefined && difference !== undefined) console.log(`${scenario.id}\n    ${difference}`);
      differences.add(scenario.id, difference);
    } finally {
      rmSync(folder, { recursive: true });
    }
  }
  if (selected !== undefined) return;
  t.comment(`audit: ${scenarios.length - differences.count}/${scenarios.length} scenarios`);
  t.same(differences.unlisted(), [], "no other scenario differs");
  t.same(differences.resolved(), [], "each listed scenario differs");
});
