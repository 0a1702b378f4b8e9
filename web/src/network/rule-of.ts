// web/src/network/rule-of.ts: what was tried, as the rule that is about it. Who only asked for a name (port 0) wants what is usual.
export function ruleOf({ host, port }: { readonly host: string; readonly port: number }): string {
  return port === 443 || port === 0 ? host : `${host}:${port}`;
}
