set -u
if [ -e config ]; then
    python train.py 30
else
fi
