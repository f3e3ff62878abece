const REPEATED = /\{(\d+)(,?)(\d*)\}/y;

/**
 * Estimates the number of instructions of an RE2 expression without compiling it: repetitions multiply.
 *
 *     [a-z]{1,63}  63     ((ab){10}){100}  4200
 */
export function patternSize(source: string): number {
  const outer: number[] = [];
  let sum = 0;
  // The size of the preceding item, which a repetition would multiply.
  let last = 0;
  for (let at = 0; at < source.length; at++) {
    const character = source[at]!;
    if (character === "(") {
      outer.push(sum);
      sum = 0;
      last = 0;
    } else if (character === ")") {
      last = sum + 2;
      sum = (outer.pop() ?? 0) + last;
    } else if (character === "{") {
      REPEATED.lastIndex = at;
      const [whole = "", least = "", comma = "", most = ""] = REPEATED.exec(source) ?? [];
      const times = Math.max(1, Number(most || least) + (comma !== "" && most === "" ? 1 : 0));
      // A brace that is not a repetition is a literal.
      sum += whole === "" ? 1 : last * (times - 1);
      last = whole === "" ? 1 : last * times;
      at += Math.max(0, whole.length - 1);
    } else if ("*+?|".includes(character)) {
      sum += 1;
      last += 1;
    } else {
      at = endOfAtom(source, at);
      sum += 1;
      last = 1;
    }
  }
  return outer.reduce((all, each) => all + each, sum);
}

/** The index of the last character of a literal, an escape or a class. */
function endOfAtom(source: string, start: number): number {
  if (source[start] === "\\") {
    const isNamed = /[pPx]/.test(source[start + 1] ?? "") && source[start + 2] === "{";
    const end = isNamed ? source.indexOf("}", start) : start + 1;
    return end === -1 ? start + 1 : end;
  }
  if (source[start] !== "[") return start;
  let at = start + (source[start + 1] === "^" ? 2 : 1);
  // A leading bracket is a literal.
  if (source[at] === "]") at++;
  for (; at < source.length && source[at] !== "]"; at++) {
    if (source[at] === "\\") at++;
    else if (source.startsWith("[:", at)) at = Math.max(at, source.indexOf(":]", at) + 1);
  }
  return at;
}
