// web/src/network/add-rule.tsx: the form that adds a network rule.
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { ReactNode } from 'react';
import { api } from '../api/client.ts';
import { cleanLine } from '../text/clean.ts';
import { Button } from '../ui/button.tsx';
import { Dialog } from '../ui/dialog.tsx';
import { Segments, TextField } from '../ui/fields.tsx';
import { Failure } from '../ui/states.tsx';
import { showToast } from '../ui/toasts.tsx';

export function AddRule({ project, onClose }: { project: string; onClose: () => void }): ReactNode {
  const [rule, setRule] = useState('');
  const [action, setAction] = useState<'allow' | 'deny'>('allow');
  const [scope, setScope] = useState<'project' | 'always'>('project');
  const client = useQueryClient();
  const add = useMutation({
    mutationFn: async () => api.changeRule({ project }, { action, rule: rule.trim(), scope }),
    onSuccess: async ({ text }) => {
      await client.invalidateQueries({ queryKey: ['network'] });
      onClose();
      showToast(cleanLine(text));
    },
  });
  return (
    <Dialog
      open
      onClose={onClose}
      title="Add rule"
      about="Agents can send data to every host you allow. Private and metadata addresses cannot be allowed here."
    >
      <form
        className="flex flex-col gap-4"
        onSubmit={(event) => {
          event.preventDefault();
          if (rule.trim() !== '') add.mutate();
        }}
      >
        <TextField
          label="Host"
          mono
          value={rule}
          onChange={setRule}
          placeholder="api.example.com"
          about="Also: *.example.com for all subdomains, example.com:8443 for another port, GET,HEAD example.com/path/* for some requests only."
        />
        <div className="flex flex-wrap gap-4">
          <Segments
            label="Action"
            value={action}
            choices={[
              { value: 'allow', label: 'Allow' },
              { value: 'deny', label: 'Deny' },
            ]}
            onChange={setAction}
          />
          <Segments
            label="Scope"
            value={scope}
            choices={[
              { value: 'project', label: 'This project' },
              { value: 'always', label: 'All my projects' },
            ]}
            onChange={setScope}
          />
        </div>
        {add.isError ? <Failure tight error={add.error} /> : null}
        <div className="flex justify-end">
          <Button type="submit" look="primary" disabled={rule.trim() === '' || add.isPending}>
            Add rule
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
