/**
 * Decides whether a history of concurrent operations is linearizable: whether some order, in which no operation comes
 * before one that had returned before its call, explains all results. Wing and Gong's search, which visits each state
 * once for the same set of operations.
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
  const entries = history.toSorted((a, b) => a.called - b.called);
  const done = new Array<boolean>(entries.length).fill(false);
  const visited = new Set<string>();
  const search = (from: number, pending: number, state: string): boolean => {
    if (pending === 0) return true;
    let first = from;
    while (done[first] === true) first++;
    const later = done.flatMap((isDone, index) => (isDone && index > first ? [index] : []));
    const visit = `${first} ${later.join()} ${state}`;
    if (visited.has(visit)) return false;
    visited.add(visit);
    let firstReturn = Number.POSITIVE_INFINITY;
    for (let index = first; index < entries.length; index++) {
      const { input, output, called, returned } = entries[index]!;
      if (called > firstReturn) break;
      if (done[index] === true) continue;
      const next = model.step(state, input, output);
      // An operation without a response and without an effect can as well come later.
      if (next !== undefined && (output !== undefined || next !== state)) {
        done[index] = true;
        if (search(first, pending - (output === undefined ? 0 : 1), next)) return true;
        done[index] = false;
      }
      if (output !== undefined) firstReturn = Math.min(firstReturn, returned);
    }
    return false;
  };
  return search(0, entries.filter(({ output }) => output !== undefined).length, model.initial);
}
