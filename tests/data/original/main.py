# Stands for a user's training. config.sh has it run by bash, so that the test needs no Python.
#   --config.crash=1     ends with an uncaught exception, after the W&B summary that such a run prints too
#   --config.crash=quiet the same without the summary, as of a run that is offline
#   --config.peer=FILE   says what FILE says, and ends as the distributed runtime does when a peer was killed
#   --config.hold=FILE   is busy until FILE exists
crash='' peer='' hold='' workdir=''
for arg in "$@"; do
  case $arg in
    --workdir=*) workdir=${arg#*=} ;;
    --config.crash=*) crash=${arg#*=} ;;
    --config.peer=*) peer=${arg#*=} ;;
    --config.hold=*) hold=${arg#*=} ;;
  esac
done
printf '%s\n' "$@" >"$workdir/arguments.txt"
echo 'I1120 06:24:39.558033 140614421764992 train.py:88] step 100/400 epoch 1.00 loss 0.4123 lr 0.01'
until [ -z "$hold" ] || [ -e "$hold" ]; do
  sleep 0.05
done
mkdir -p "$workdir/checkpoint_200"
echo 'weights' >"$workdir/checkpoint_200/data"
echo 'I1120 06:24:42.101276 140614421764992 train.py:88] step 200/400 epoch 2.00 loss 0.2210 lr 0.01'
if [ -n "$peer" ]; then
  cat "$peer"
  exit 134
fi
if [ -n "$crash" ]; then
  echo 'Traceback (most recent call last):'
  echo '  File "main.py", line 61, in <module>'
  echo '    app.run(main)'
  echo "TypeError: train_step() missing 1 required positional argument: 'batch'"
  result='(failed 1)'
else
  echo 'I1120 06:24:47.558033 140614421764992 train.py:88] step 400/400 epoch 4.00 loss 0.1204 lr 0.01'
  result='(success)'
fi
[ "$crash" = quiet ] && exit 1
echo "wandb: Waiting for W&B process to finish... $result."
echo 'wandb: '
echo 'wandb: Run history:'
echo 'wandb:   loss █▄▁'
echo 'wandb: '
echo 'wandb: Run summary:'
echo 'wandb:   loss 0.1204'
[ -z "$crash" ]
