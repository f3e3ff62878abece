/** When the total of a response is longer, each text is truncated, and further texts are dropped. */
export const WARNINGS_CHARACTERS_MAX = 4096;
export const WARNING_CHARACTERS_MAX = 256;
/** Texts that are compared to find those that can be sent. */
const TEXTS_MAX = 10_000;

/**
 * The warnings that a response has room for, of an iterable that may create them without end: of ports that overlap in
 * pairs, thousands have millions. A response that truncates sends none of the others.
 */
export function takeSendableWarnings(warnings: Iterable<string>): readonly string[] {
  const taken = new Set<string>();
  let characters = 0;
  let texts = 0;
  for (const text of warnings) {
    if (!taken.has(text)) characters += Math.min(text.length, WARNING_CHARACTERS_MAX);
    taken.add(text);
    if (characters > 2 * WARNINGS_CHARACTERS_MAX || ++texts === TEXTS_MAX) break;
  }
  return [...taken];
}
