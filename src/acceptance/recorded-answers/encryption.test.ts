/**
 * Compares what is stored with an EncryptionConfiguration, and the errors of invalid ones, with the recording of a
 * Kubernetes 1.33 server. `testdata/recorded-differences/encryption.json` lists the scenarios that differ by reason.
 *
 *     SVC_SCENARIO=encryption/aes node src/acceptance/recorded-answers/encryption.test.ts   prints their differences
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import t from "tap";
import { defaultConfig } from "../../apiserver/config/default-config.ts";
import { apiServerOptions } from "../../apiserver/config/options.ts";
import { apiserverFlags } from "../../apiserver/flags/flags.ts";
import { defaultFlags } from "../../flags/flag.ts";
import { apiserverGates } from "../../flags/gate-tables/apiserver.ts";
import { FeatureGates } from "../../flags/gates.ts";
import { createMemoryStore } from "../../storage/memory.ts";
import type { TestServer } from "../../testing/apiserver/server-fixture.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { keepOpen } from "../../testing/storage/keep-open.ts";
import { RecordedDifferences } from "./recorded-differences.ts";
import type { Scenario } from "./scenario.ts";
import { Player, recordedScenarios, startRecordedServer } from "./scenarios.ts";

interface EncryptionStep {
  readonly action?: string;
  readonly config?: object | null;
  readonly text?: string;
  readonly flags?: readonly string[];
  readonly reload?: boolean;
  readonly key?: string;
  readonly to?: string;
  readonly value?: string;
  readonly ms?: number;
  readonly until?: string;
  readonly expect?: {
    readonly started?: boolean;
    readonly exit?: number;
    readonly lines?: readonly string[];
    readonly prefix?: string;
    readonly plaintext?: boolean;
    readonly missing?: boolean;
  };
}

const PREFIX = "/registry";
const MARKER = Buffer.from("plaintext-marker");

class Recording implements AsyncDisposable {
  readonly #folder = mkdtempSync(join(tmpdir(), "recorded-encryption-"));
  readonly #store = createMemoryStore({ clock: new FakeClock() });
  #server: TestServer | undefined;
  #player: Player | undefined;

  async play(scenario: Scenario): Promise<string | undefined> {
    for (const [place, step] of (scenario.steps as unknown as readonly EncryptionStep[]).entries()) {
      const difference = await this.#step(scenario, step, place);
      if (difference !== undefined) return `step ${place}, ${step.action ?? "request"}: ${difference}`;
    }
    return undefined;
  }

  async #step(scenario: Scenario, step: EncryptionStep, place: number): Promise<string | undefined> {
    switch (step.action) {
      case "config":
        return await this.#configure(step);
      case "stored":
        return await this.#compareStored(step);
      case "put":
        await this.#put(step.key ?? "", Buffer.from(step.value ?? ""));
        return undefined;
      case "copy":
        await this.#put(step.to ?? "", (await this.#store.get(PREFIX + step.key))?.value ?? Buffer.of());
        return undefined;
      case "rewrite":
        writeFileSync(join(this.#folder, "config"), step.text ?? JSON.stringify(step.config));
        await this.#server?.clock.advance(Math.max(step.ms ?? 0, 61_000));
        return undefined;
      default:
        return await this.#player?.play({ ...scenario, setup: [], steps: scenario.steps.slice(place, place + 1) });
    }
  }

  async #configure({ config, text, flags = [], reload = false, expect }: EncryptionStep): Promise<string | undefined> {
    await this.#server?.[Symbol.asyncDispose]();
    this.#server = undefined;
    const file = join(this.#folder, "config");
    const isGiven = text !== undefined || (config !== null && config !== undefined);
    if (isGiven) writeFileSync(file, text ?? JSON.stringify(config));
    const given = Object.fromEntries(
      [
        ...(isGiven ? [`--encryption-provider-config=${file}`] : []),
        ...(reload ? ["--encryption-provider-config-automatic-reload=true"] : []),
        ...flags,
      ].map((flag) => {
        const [name = "", value = ""] = flag.slice(2).split("=");
        return [name, value === "true" ? true : value] as const;
      }),
    );
    let message: string | undefined;
    try {
      const gates = new FeatureGates(apiserverGates, {});
      const { "feature-gates": _, ...values } = given;
      const { storage } = apiServerOptions({ ...defaultFlags(apiserverFlags), ...values }, gates, "v1.33.13");
      const own = { ...defaultConfig.storage, encryption: storage.encryption };
      this.#server = await startRecordedServer({ storage: own }, undefined, { store: keepOpen(this.#store) });
      this.#player = new Player(this.#server);
    } catch (error) {
      message = (error as Error).message.replaceAll(file, "<dir>/config");
    }
    const wanted = expect?.lines?.[0]?.replace(/^"command failed" err=/, "");
    const wantedText = wanted === undefined ? undefined : (JSON.parse(wanted) as string);
    const shown = message?.replace(/\(0x\w+\)/g, "(<ptr>)");
    return shown === wantedText?.replace(/\((?:0x\w+|<ptr>)\)/g, "(<ptr>)")
      ? undefined
      : `${message}, not ${wantedText}`;
  }

  async #compareStored({ key, expect }: EncryptionStep): Promise<string | undefined> {
    const item = await this.#store.get(PREFIX + key);
    if (item === undefined) return expect?.missing === true ? undefined : "there is no such key";
    const bytes = Buffer.from(item.value);
    const encrypted = /^k8s:enc:\w+:v\d:[^:]*:/.exec(bytes.toString("latin1"))?.[0];
    const plaintext = bytes.includes(MARKER) || encrypted === undefined;
    // The envelope of plain text has the project's own magic bytes.
    const prefix = encrypted ?? bytes.subarray(0, 4).toString("latin1").replace("svc", "k8s").replace("\0", ".");
    const found = { prefix, plaintext };
    const wanted = { prefix: expect?.prefix, plaintext: expect?.plaintext };
    return JSON.stringify(found) === JSON.stringify(wanted) ? undefined : JSON.stringify([found, wanted]);
  }

  async #put(key: string, value: Uint8Array): Promise<void> {
    const current = await this.#store.get(PREFIX + key);
    if (current === undefined) await this.#store.create(PREFIX + key, value);
    else await this.#store.update(PREFIX + key, value, current.modified);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server?.[Symbol.asyncDispose]();
    await this.#store[Symbol.asyncDispose]();
    rmSync(this.#folder, { recursive: true });
  }
}

/** A wrong key decrypts to random padding, which decides between two errors. */
const RANDOM_PADDING = /invalid PKCS7 data|invalid padding on input/;
const ATTEMPTS_MAX = 10;

async function playOften(scenario: Scenario): Promise<string | undefined> {
  for (let attempt = 1; ; attempt++) {
    await using recording = new Recording();
    const difference = await recording.play(scenario);
    if (difference === undefined || !RANDOM_PADDING.test(difference) || attempt === ATTEMPTS_MAX) return difference;
  }
}

t.setTimeout(300_000);
t.test("encryption at rest is that of a Kubernetes 1.33 server", { timeout: 300_000 }, async (t) => {
  const scenarios = recordedScenarios("encryption", "recorded-apiserver-more");
  if (scenarios === undefined) {
    t.comment("Skipped: shared/ is not present");
    return;
  }
  const selected = process.env.SVC_SCENARIO;
  const differences = new RecordedDifferences("encryption");
  for (const scenario of scenarios.filter(({ id }) => selected === undefined || id.includes(selected))) {
    const difference = await playOften(scenario);
    if (selected !== undefined && difference !== undefined) console.log(`${scenario.id}\n    ${difference}`);
    differences.add(scenario.id, difference);
  }
  if (selected !== undefined) return;
  t.comment(`encryption: ${scenarios.length - differences.count}/${scenarios.length} scenarios`);
  t.same(differences.unlisted(), [], "no other scenario differs");
  t.same(differences.resolved(), [], "each listed scenario differs");
});
