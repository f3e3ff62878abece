/** A number, or the percentage of the total that the text is. Other text is 0; validation rejects it. */
export function scaledValue(value: number | string, total: number, round: (value: number) => number): number {
  if (typeof value === "number") return value;
  const percent = /^(\d+)%$/.exec(value)?.[1];
  return percent === undefined ? 0 : round((Number(percent) * total) / 100);
}
