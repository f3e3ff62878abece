/** The name of the tables of nftables; without a suffix that of the cluster in the default directory. */
export function policyTableName(suffix: string | undefined): string {
  return suffix === undefined ? "svc-network-policy" : `svc-network-policy-${suffix}`;
}
