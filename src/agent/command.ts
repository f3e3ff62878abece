/** `svc agent`, also invoked as `svclet`: resolves with the exit code. */
export async function run(argv: readonly string[]): Promise<number> {
  throw new Error(`Cannot run agent with ${argv.length} arguments: its parts are not assembled`);
}
