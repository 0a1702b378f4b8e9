// web/src/settings/agents.tsx: the agents and their sign-in state. Users sign in from their own terminal.
import { Check, CircleX, Minus, TriangleAlert } from 'lucide-react';
import type { ReactNode } from 'react';
import type { ApiAgent } from '../../../src/protocol/api/api.ts';
import { cleanLine } from '../text/clean.ts';
import { Copyable } from '../ui/copyable.tsx';
import { Section } from './section.tsx';

export function Agents({
  agents,
  defaultAgent,
}: {
  agents: readonly ApiAgent[];
  defaultAgent: string | null;
}): ReactNode {
  return (
    <Section
      title="Agents"
      about="API keys and tokens stay outside every sandbox. Agents see placeholders; ags adds the real values to their requests."
    >
      <ul className="grid gap-3 md:grid-cols-2">
        {agents.map((agent) => (
          <li key={agent.name} className="flex flex-col gap-1 rounded-lg border border-line p-4">
            <p className="flex items-center justify-between gap-3">
              <span className="font-medium">{cleanLine(agent.title)}</span>
              <SignIn state={agent.installed ? agent.signedIn : 'missing'} />
            </p>
            {agent.installed ? (
              <p className="text-sm wrap-anywhere text-muted">
                {agent.version === null ? '' : `Version ${cleanLine(agent.version)}, `}
                {cleanLine(agent.from ?? 'installed')}
                {agent.name === defaultAgent ? '; default' : ''}
              </p>
            ) : null}
            {agent.signIn === null ? null : (
              <p className="mb-1 grow text-sm wrap-anywhere text-muted">{cleanLine(agent.signIn)}</p>
            )}
            {!agent.installed ? (
              <Copyable text={`ags agents install ${agent.name}`} />
            ) : agent.signedIn === 'no' || agent.signedIn === 'expired' ? (
              <Copyable text={`ags auth ${agent.name}`} />
            ) : null}
          </li>
        ))}
      </ul>
    </Section>
  );
}

function SignIn({ state }: { state: ApiAgent['signedIn'] | 'missing' }): ReactNode {
  const [Sign, word, colour] = SIGNS[state];
  return (
    <span className={`flex items-center gap-1.5 text-sm font-medium ${colour}`}>
      <Sign size={16} aria-hidden /> {word}
    </span>
  );
}

const SIGNS = {
  yes: [Check, 'Signed in', 'text-ok'],
  no: [CircleX, 'Not signed in', 'text-muted'],
  'not-needed': [Check, 'No sign-in needed', 'text-ok'],
  expired: [TriangleAlert, 'Sign-in expired', 'text-warn'],
  missing: [Minus, 'Not installed', 'text-muted'],
} as const;
