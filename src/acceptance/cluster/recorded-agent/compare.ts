/** Compares two records of a pod and reports differences as lines. Ignores times and other volatile values. */
import type { ContainerJson, EventJson, PodRecord, PodStatusJson, RunLog, StateJson } from "./cases.ts";
import { containersOf } from "./conditions.ts";
import { matchesText, type TextTraits, unmatched, withoutSizes } from "./texts.ts";

/** Empty when they agree. */
export function differences(recorded: PodRecord, played: PodRecord, traits: TextTraits): readonly string[] {
  const [wanted, got] = [recorded.snapshots, played.snapshots].map((all) => all.map(({ status }) => status));
  return [
    ...phases(wanted!, got!),
    ...states(wanted!, got!),
    ...ends(wanted!.at(-1) ?? {}, got!.at(-1) ?? {}, looping(wanted!, got!), traits),
    ...events(recorded.events, played.events, isSlowServer(recorded.logs), traits),
    ...logs(recorded.logs, played.logs, wanted!.at(-1) ?? {}, traits),
  ];
}

type Statuses = readonly PodStatusJson[];

function phases(wanted: Statuses, got: Statuses): readonly string[] {
  const of = (all: Statuses): readonly string[] => steps(all.map(({ phase }) => phase ?? "none"));
  const seen = of(got);
  // kubelet reports the last phase a second after the last exit; the recording may have ended before.
  const ended = containersOf(wanted.at(-1) ?? {}).every(({ state }) => state.terminated !== undefined);
  const isLast = (phase: string | undefined): boolean => /^(Succeeded|Failed)$/.test(phase ?? "");
  const early = ended && isLast(seen.at(-1)) && !isLast(of(wanted).at(-1));
  return orders("phases", of(wanted), early ? seen.slice(0, -1) : seen, (phase) => phase === "Running");
}

/** States that a recording may miss because they are short, such as an exit before a restart. */
function isTransient(state: string, all: readonly string[]): boolean {
  if (/^(running|waiting (ContainerCreating|PodInitializing|CrashLoopBackOff)) /.test(state)) return true;
  const run = Number(/#(\d+)$/.exec(state)?.[1]);
  return state.startsWith("terminated ") && all.some((other) => other === `running #${run + 1}`);
}

function states(wanted: Statuses, got: Statuses): readonly string[] {
  const loops = looping(wanted, got);
  return namesIn([...wanted, ...got]).flatMap((name) => {
    const [before, after] = [statesOf(wanted, name), statesOf(got, name)];
    const last = loops.has(name) ? Math.min(lastRun(before), lastRun(after)) : Number.POSITIVE_INFINITY;
    const [a, b] = [before, after].map((all) => all.filter((state) => runOf(state) <= last));
    return orders(`states of ${name}`, a!, b!, isTransient);
  });
}

function namesIn(all: Statuses): readonly string[] {
  return [...new Set(all.flatMap((status) => containersOf(status).map(({ name }) => name)))];
}

function statesOf(all: Statuses, name: string): readonly string[] {
  return steps(
    all.flatMap((status) =>
      containersOf(status)
        .filter((container) => container.name === name)
        .map(({ state, restartCount }) => `${stateText(state, false)} #${restartCount}`),
    ),
  );
}

function runOf(state: string): number {
  return Number(/#(\d+)$/.exec(state)?.[1]);
}

function lastRun(all: readonly string[]): number {
  return Math.max(...all.map(runOf));
}

/** Containers in a crash loop, whose number of restarts at the end of the recording may differ by one. */
function looping(wanted: Statuses, got: Statuses): ReadonlySet<string> {
  const loops = (all: readonly string[]): boolean => all.some((state) => state.startsWith("waiting CrashLoopBackOff"));
  const pairs = namesIn(wanted).map((name) => [name, statesOf(wanted, name), statesOf(got, name)] as const);
  return new Set(
    pairs
      .filter(([, a, b]) => (loops(a) || loops(b)) && Math.abs(lastRun(a) - lastRun(b)) <= 1)
      .filter(([, ...both]) => both.every((all) => !all.at(-1)?.startsWith("running")))
      .map(([name]) => name),
  );
}

function stateText({ waiting, running, terminated }: StateJson, whole: boolean): string {
  const message = (text: string | undefined): string => (whole && text !== undefined ? ` "${plain(text)}"` : "");
  if (waiting !== undefined) return `waiting ${waiting.reason ?? ""}${message(waiting.message)}`;
  if (running !== undefined) return "running";
  if (terminated === undefined) return "none";
  const { exitCode, signal, reason } = terminated;
  const by = signal ? ` signal ${signal}` : "";
  return `terminated ${reason ?? ""} ${exitCode}${by}${message(terminated.message)}`;
}

/** The last status in full. */
function ends(
  wanted: PodStatusJson,
  got: PodStatusJson,
  loops: ReadonlySet<string>,
  traits: TextTraits,
): readonly string[] {
  const of = (status: PodStatusJson): Readonly<Record<string, string>> => ({
    reason: status.reason ?? "",
    message: plain(status.message ?? ""),
    ...Object.fromEntries(
      (status.conditions ?? []).map(({ type, status: is, reason = "", message = "" }) => [
        `condition ${type}`,
        [is, reason, plain(message)].filter((text) => text !== "").join(" "),
      ]),
    ),
    ...Object.fromEntries(
      containersOf(status)
        .filter(({ name }) => !loops.has(name))
        .map((container) => [`end of ${container.name}`, containerText(container)]),
    ),
  });
  return members(of(wanted), of(got), traits);
}

/** lastState is not compared: kubelet drops it after garbage collection, svc does not. */
function containerText({ state, ready, started }: ContainerJson): string {
  return `${stateText(state, true)}; ready ${ready}; started ${started}`;
}

/** Components whose events are ignored. */
const others = /^(Scheduled|NodeNotReady|FailedScheduling|TaintManagerEviction)$/;

/** Whether the pod runs the test server, which takes a second to listen, unlike the recorder's server. */
function isSlowServer(logs: PodRecord["logs"]): boolean {
  return Object.values(logs).some((runs) =>
    runs.some(({ lines }) => lines.some(([, , text]) => /^HTTP\/\d/.test(text))),
  );
}

/** Failures of a probe at the end of its container; an agent that is notified of exits has few. */
const ended =
  /unknown state: .*(no running task found|CONTAINER_EXITED|in a (stopped|deleted) state|process does not exist)/;
const notListening = /probe failed: .*(connection refused|failed to connect service)/;

function events(
  wanted: readonly EventJson[],
  got: readonly EventJson[],
  slow: boolean,
  traits: TextTraits,
): readonly string[] {
  const of = (all: readonly EventJson[]): readonly string[] => [
    ...new Set(
      all
        .filter(
          ({ reason, message }) =>
            !others.test(reason) && !(slow && notListening.test(message)) && !ended.test(message),
        )
        .map(({ type, reason, message, fieldPath }) => `${type} ${reason} ${fieldPath ?? ""} "${plain(message)}"`),
    ),
  ];
  return sets("event", of(wanted), of(got), traits);
}

/** Ignores a run that started after the last status of the recording. */
function logs(
  wanted: PodRecord["logs"],
  got: PodRecord["logs"],
  last: PodStatusJson,
  traits: TextTraits,
): readonly string[] {
  const names = [...new Set([...Object.keys(wanted), ...Object.keys(got)])];
  const known = new Map(containersOf(last).map(({ name, restartCount }) => [name, restartCount]));
  return names.flatMap((name) =>
    [...new Set((wanted[name] ?? []).map(({ restart }) => restart))]
      .filter((restart) => restart <= (known.get(name) ?? restart))
      .flatMap((restart) =>
        sets(
          `log of ${name} #${restart}`,
          texts(linesOf(wanted[name], restart)),
          texts(linesOf(got[name], restart)),
          traits,
        ),
      ),
  );
}

/** Later pods of the same name count restarts from 0. */
function linesOf(runs: readonly RunLog[] | undefined, restart: number): RunLog["lines"] {
  return (runs ?? []).filter((run) => run.restart === restart).flatMap(({ lines }) => lines);
}

function texts(lines: RunLog["lines"]): readonly string[] {
  return [...new Set(lines.map(([, stream, text]) => `${stream} ${withoutSizes(plain(text))}`))];
}

/** Removes volatile values and texts of the runtime. */
function plain(text: string): string {
  return (
    text
      .replace(/(rpc error:|OCI runtime|failed to create containerd task).*$/s, "$1 …")
      .replace(/containerd:\/\/(<id-\d+>|[0-9a-f]{64})/g, "<id>")
      .replace(/<id-\d+>|\b[0-9a-f]{64}\b/g, "<id>")
      .replace(/<hash-\d+>|\b[0-9a-f]{32}\b/g, "<hash>")
      .replace(/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/g, "<uuid>")
      // Output of `ps`.
      .replace(/^ +\d+ (?=[{/\w])/, "<pid> ")
      .replace(/(type tmpfs \(.*size=)\d+k/, "$1<size>")
      .replace(/^127\.0\.0\.1 (?!localhost$).*$/, "127.0.0.1 <hostname>")
      .replace(/\bsvclet does not/g, "kubelet does not")
      .replace(/Grpc-Timeout=\["\d+u"\]/g, "Grpc-Timeout")
      .replace(/<node>/g, "recorded")
  );
}

/** Removes repetitions. */
function steps(all: readonly string[]): readonly string[] {
  return all.filter((each, index) => each !== all[index - 1]);
}

/** Compares sequences; either may lack transient states. */
function orders(
  what: string,
  wanted: readonly string[],
  got: readonly string[],
  passes: (step: string, all: readonly string[]) => boolean,
) {
  const common = longestCommon(wanted, got);
  const rest = (all: readonly string[]): readonly string[] => {
    let next = 0;
    return all.filter((each) => (each === common[next] ? next++ < 0 : !passes(each, all)));
  };
  if (rest(wanted).length === 0 && rest(got).length === 0) return [];
  return [`${what}: ${wanted.join(", ")}`, `${" ".repeat(what.length - 4)}not ${got.join(", ")}`];
}

function longestCommon(a: readonly string[], b: readonly string[]): readonly string[] {
  let row: (readonly string[])[] = b.map(() => []);
  for (const each of a) {
    const next: (readonly string[])[] = [];
    for (const [index, other] of b.entries()) {
      const left = next[index - 1] ?? [];
      const above = row[index] ?? [];
      const diagonal = each === other ? [...(row[index - 1] ?? []), each] : [];
      next.push([left, above, diagonal].reduce((best, one) => (one.length > best.length ? one : best)));
    }
    row = next;
  }
  return row.at(-1) ?? [];
}

function sets(what: string, wanted: readonly string[], got: readonly string[], traits: TextTraits): readonly string[] {
  const { missing, excess } = unmatched(wanted, got, traits);
  return [...missing.map((each) => `${what} missing: ${each}`), ...excess.map((each) => `${what} in excess: ${each}`)];
}

type Texts = Readonly<Record<string, string>>;

function members(wanted: Texts, got: Texts, traits: TextTraits): readonly string[] {
  const isSame = (a = "absent", b = "absent"): boolean => matchesText(a, b, traits) || sortLines(a) === sortLines(b);
  return [...new Set([...Object.keys(wanted), ...Object.keys(got)])]
    .filter((name) => !isSame(wanted[name], got[name]))
    .map((name) => `${name}: ${wanted[name] ?? "absent"}; not ${got[name] ?? "absent"}`);
}

/** A message of the log's end has the lines of two streams in the order in which the runtime read them. */
function sortLines(text: string): string {
  const [, start = "", message = "", end = ""] = /^([^"]*")(.*)("[^"]*)$/s.exec(text) ?? [];
  return start + message.split("\n").sort().join("\n") + end;
}
