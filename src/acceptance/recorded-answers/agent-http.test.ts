/**
 * Compares the agent's responses with those recorded of kubelet 1.33: code, headers and body.
 * `testdata/recorded-differences/agent-http.json` lists the requests that differ by reason; none may be added.
 *
 *     SVC_RECORD=1 node src/acceptance/recorded-answers/agent-http.test.ts     removes requests that agree now
 */
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import t from "tap";
import { type Exchange, readRecording, startRecordedAgent } from "./agent-http.ts";

const list = fileURLToPath(new URL("../../../testdata/recorded-differences/agent-http.json", import.meta.url));

type Differences = Readonly<Record<string, readonly string[]>>;

/** Equal requests have the same name with a number. */
function nameOf(exchange: Exchange, index: number, all: readonly Exchange[]): string {
  const base = baseName(exchange);
  const earlier = all.slice(0, index).filter((other) => baseName(other) === base).length;
  return earlier === 0 ? base : `${base} (${earlier + 1})`;
}

function baseName({ what, as, method = "GET", path }: Exchange): string {
  const origin = as ?? what.replace(/ \(.*| \d.*/, "");
  return `${origin}: ${method} ${path}`;
}

t.test("requests to the agent get the responses of kubelet 1.33", async (t) => {
  const recording = readRecording();
  if (recording === undefined) {
    t.comment("Skipped: shared/ is not present");
    return;
  }
  await using agent = await startRecordedAgent(recording);
  const listed = JSON.parse(readFileSync(list, "utf8")) as Differences;
  const expected = new Set(Object.values(listed).flat());
  // The agent of this test serves the read-only port, unlike the recorded one.
  const exchanges = recording.exchanges.filter(({ error }) => error === undefined);
  const differing = new Set<string>();
  for (const [index, exchange] of exchanges.entries()) {
    const difference = await agent.compare(exchange);
    if (difference === undefined) continue;
    const name = nameOf(exchange, index, exchanges);
    differing.add(name);
    if (!expected.has(name)) t.fail(`${name}: ${difference}`);
  }
  t.comment(`${exchanges.length - differing.size}/${exchanges.length} requests`);
  const agreeing = [...expected].filter((name) => !differing.has(name));
  if (process.env.SVC_RECORD === "1") {
    const kept = Object.entries(listed).map(([reason, names]) => [reason, names.filter((name) => differing.has(name))]);
    writeFileSync(list, `${JSON.stringify(Object.fromEntries(kept), undefined, 1)}\n`);
  } else t.same(agreeing, [], "every listed request differs (SVC_RECORD=1 removes the others)");
});
