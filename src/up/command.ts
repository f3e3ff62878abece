export async function run(argv: readonly string[]): Promise<number> {
  throw new Error(String(argv));
}
