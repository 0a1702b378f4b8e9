// cli/verbs/deny.ts: `ags deny <rule>...`.
import { ruleVerb } from '../net/rule-verb.ts';

export default ruleVerb('deny', {
  summary: 'keep sandboxes from reaching a host',
  about:
    'A deny wins over every allow, including built-in ones. Without an option, it applies at once to new connections of running sandboxes of this project. --project and --always write it into a file and also change running sandboxes. Rules have the form that "ags allow" describes.',
  examples: [
    'ags deny gist.github.com',
    "ags deny --project '*.example.com'",
    'ags deny --always telemetry.example.com',
  ],
});
