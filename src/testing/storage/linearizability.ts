/**
 * Decides whether a history of concurrent operations is linearizable: whether some order, in which no operation comes
 * before one that had returned before its call, explains all results. Wing and Gong's search, which visits each state
 * once for the same set of operations.
 *
 * Operations without a response are tried after those with one, and of several with the same input the first, since
 * they are interchangeable. At most three of them follow each other: more are not needed to reach any state.
 */

export interface HistoryEntry<I, O> {
  readonly input: I;
  /** Undefined when the client received no response: the operation took effect at some time, or never. */
  readonly output: O | undefined;
  /** Monotonic times. */
  readonly called: number;
  readonly returned: number;
}

export interface SequentialModel<I, O> {
  /** The state before the first operation; states are compared as text. */
  readonly initial: string;
  /** The state after the operation; undefined when the operation cannot have this output in this state. */
  step(state: string, input: I, output: O | undefined): string | undefined;
}

export function isLinearizable<I, O>(history: readonly HistoryEntry<I, O>[], model: SequentialModel<I, O>): boolean {
  const UNANSWERED_MAX = 3;
  const entries = history.toSorted((a, b) => a.called - b.called);
  const done = new Array<boolean>(entries.length).fill(false);
  const visited = new Set<string>();
  const inputs = entries.map(({ input, output }) => (output === undefined ? JSON.stringify(input) : ""));
  const search = (from: number, pending: number, state: string, unansweredBefore: number): boolean => {
    if (pending === 0) return true;
    let first = from;
    while (done[first] === true) first++;
    const later = done.flatMap((isDone, index) => (isDone && index > first ? [index] : []));
    const visit = `${unansweredBefore} ${first} ${later.join()} ${state}`;
    if (visited.has(visit)) return false;
    visited.add(visit);
    const answered: number[] = [];
    const unanswered = new Map<string, number>();
    let firstReturn = Number.POSITIVE_INFINITY;
    for (let index = first; index < entries.length; index++) {
      const { output, called, returned } = entries[index]!;
      if (called > firstReturn) break;
      if (done[index] === true) continue;
      if (output === undefined) {
        if (!unanswered.has(inputs[index]!)) unanswered.set(inputs[index]!, index);
      } else {
        answered.push(index);
        firstReturn = Math.min(firstReturn, returned);
      }
    }
    for (const index of [...answered, ...(unansweredBefore < UNANSWERED_MAX ? unanswered.values() : [])]) {
      const { input, output } = entries[index]!;
      const next = model.step(state, input, output);
      // An operation without a response and without an effect can as well come later.
      if (next === undefined || (output === undefined && next === state)) continue;
      done[index] = true;
      const isFound =
        output === undefined ? search(first, pending, next, unansweredBefore + 1) : search(first, pending - 1, next, 0);
      if (isFound) return true;
      done[index] = false;
    }
    return false;
  };
  return search(0, entries.filter(({ output }) => output !== undefined).length, model.initial, 0);
}
