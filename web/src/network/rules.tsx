// web/src/network/rules.tsx: the rules in force with their origin, and the built-in host lists (presets).
import { Ban, Check } from 'lucide-react';
import type { ReactNode } from 'react';
import type { ApiNetwork } from '../../../src/protocol/api/api.ts';
import { cleanLine } from '../text/clean.ts';
import { plural } from '../text/format.ts';
import { Empty } from '../ui/states.tsx';

export function Rules({ rules }: { rules: ApiNetwork['rules'] }): ReactNode {
  if (rules.length === 0) return <Empty title="No rules: every host is blocked" />;
  return (
    <ul className="border-t border-line">
      {rules.map((rule, at) => (
        <li
          key={at}
          className="grid gap-x-4 border-b border-line px-3 py-2 sm:grid-cols-[6rem_minmax(0,1fr)_minmax(0,14rem)] sm:items-center"
        >
          <span className={`flex items-center gap-1.5 font-medium ${rule.action === 'allow' ? 'text-ok' : 'text-bad'}`}>
            {rule.action === 'allow' ? <Check size={16} aria-hidden /> : <Ban size={16} aria-hidden />}
            {rule.action === 'allow' ? 'Allow' : 'Deny'}
          </span>
          <span className="font-mono text-sm wrap-anywhere">{cleanLine(rule.text)}</span>
          <span className="text-sm wrap-anywhere text-muted">{cleanLine(rule.origin)}</span>
        </li>
      ))}
    </ul>
  );
}

export function Presets({ presets }: { presets: ApiNetwork['presets'] }): ReactNode {
  return (
    <>
      <p className="mb-3 max-w-prose text-muted">
        Host lists for common package registries and services. Turn them on in the project’s ags.yaml:{' '}
        <code className="font-mono text-sm">network: presets: [npm, pypi]</code>
      </p>
      <ul className="grid gap-3 md:grid-cols-2">
        {presets.map((preset) => (
          <li key={preset.name} className="rounded-lg border border-line p-3">
            <p className="flex items-center justify-between">
              <span className="font-medium">{cleanLine(preset.name)}</span>
              <span className={`text-sm ${preset.used ? 'text-ok' : 'text-muted'}`}>
                {preset.used ? 'In use' : 'Not in use'}
              </span>
            </p>
            <details className="mt-1 text-sm">
              <summary className="min-h-6 cursor-pointer text-muted">{plural(preset.hosts.length, 'host')}</summary>
              <ul className="mt-1 font-mono">
                {preset.hosts.map((host) => (
                  <li key={host} className="wrap-anywhere">
                    {cleanLine(host)}
                  </li>
                ))}
              </ul>
            </details>
          </li>
        ))}
      </ul>
    </>
  );
}
